"""Passed: which tenants a claimer passes over, and until when. All of it is memory: it saves claims in vain, and who is
passed over is looked at again by himself after LONGEST_WAIT, whatever was changed meanwhile."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from jobs.leases.ring import Ring
from jobs.steady import time

FREE_SECONDS = 0.02
"""Seconds between two questions for tenants that were at their limit; an own settle brings one back at once."""
IN_VAIN, SELDOM = 4, 16
"""After so many more questions in vain than not each one waits twice as long as the one before, up to so many times: a
slot that becomes free is mostly taken again by whose job has ended, who needs no question."""
MOST_IN_VAIN = IN_VAIN + SELDOM.bit_length() - 1
STILL_FREE_SECONDS = 0.05
"""After so long a slot that was free and still is is nobody's to fill."""
BUSY_SECONDS = (0.005, 0.02)
"""How long a tenant or queue that another claimer has locked is passed over."""
BUSY_SHARE, IDLE_SHARE = 20, 4
"""The question takes at most a twentieth of the time, a quarter when there is nothing else to do."""
LONGEST_WAIT = 1.0
"""Seconds after which anybody is looked at again: so soon a lifted hold and a raised rate are noticed."""

Ask = Callable[[Sequence[int]], Iterable[tuple[int, float | None]]]
"""Of these tenants, how many seconds each has still to wait; None: it may run again; 0: until one of its jobs ends."""


def wait_after(vain: int) -> float:
    """Seconds until the next question after so many in vain."""
    return FREE_SECONDS * min(SELDOM, 1 << max(0, vain - IN_VAIN))


class Passed:
    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self.full: set[int] = set()
        """At a limit of what runs: a job that ends frees them."""
        self.later: dict[int, float] = {}
        """Held, or out of tokens: time frees them. The monotonic time of the next question."""
        self.busy: dict[int, float] = {}
        """Locked by another claimer: until then."""
        self.noisy: dict[int, float] = {}
        """They hold their share of our threads: until one of their jobs here ends, or then."""
        self.tied: set[int] = set()
        """Their entries must start at once: until a thread is free."""
        self._free: set[int] = set()
        """Had a slot at the last question. Mostly its process fills it at once: it is asked for alone a little later, and
        comes back when it still has one."""
        self._freed: deque[int] = deque()
        self._asked, self._asking, self._vain = float("-inf"), 0.0, 0

    def __bool__(self) -> bool:
        return bool(self.full or self.later or self.busy or self.noisy or self._freed or self.tied)

    def at_limit(self, tenant_id: int, wait: float | None) -> None:
        """`wait`: seconds until it is worth another question; None: until one of its jobs ends."""
        self._await(tenant_id, wait)
        self.ring.pass_over(tenant_id)

    def locked(self, tenant_id: int) -> None:
        self.busy[tenant_id] = time.monotonic() + random.uniform(*BUSY_SECONDS)  # noqa: S311
        self.ring.pass_over(tenant_id)

    def hushed(self, tenant_id: int) -> None:
        self.noisy[tenant_id] = time.monotonic() + LONGEST_WAIT
        self.ring.pass_over(tenant_id)

    def tie(self, tenant_id: int) -> None:
        self.tied.add(tenant_id)
        self.ring.pass_over(tenant_id)

    def untie(self) -> None:
        """A thread is free."""
        for tenant_id in self.tied:
            self.ring.bring_back(tenant_id)
        self.tied.clear()

    def settled(self, tenant_id: int) -> None:
        """One of its jobs here has ended. From any thread."""
        if tenant_id in self.full or tenant_id in self.noisy:
            self._freed.append(tenant_id)

    def retry_in(self) -> float | None:
        """Seconds until somebody is worth another try; None when there is nobody."""
        times = [at for kind in (self.busy, self.later, self.noisy) for at in kind.values()]
        if self.full:
            times.append(self._asked + self._interval())
        return max(0.0, min(times) - time.monotonic()) if times else None

    def bring_back(self, ask: Ask) -> None:
        """Those whose time has come."""
        now = time.monotonic()
        while self._freed:
            self._return(self._freed.popleft())
        for kind in (self.busy, self.noisy):
            for tenant_id in [tenant for tenant, until in kind.items() if until <= now]:
                del kind[tenant_id]
                self.ring.bring_back(tenant_id)
        if now >= self._asked + self._interval():
            self._question(ask, now)

    def _question(self, ask: Ask, now: float) -> None:
        seen, self._free = self._free, set()
        tenants = [*(seen or self.full), *(tenant for tenant, at in self.later.items() if at <= now)]
        if not tenants:
            return
        returned = False
        for tenant_id, wait in ask(tenants):
            if wait is not None:
                self._await(tenant_id, wait)
            elif tenant_id in self.full and tenant_id not in seen:
                self._free.add(tenant_id)
            else:
                self._return(tenant_id)
                returned = True
        if returned:
            self._vain = max(0, self._vain - 1)
        elif not self._free:
            self._vain = min(self._vain + 1, MOST_IN_VAIN)
        self._asked = time.monotonic()
        self._asking = self._asked - now

    def _interval(self) -> float:
        """Seconds between two questions."""
        share = BUSY_SHARE if len(self.ring) else IDLE_SHARE
        return max(STILL_FREE_SECONDS if self._free else wait_after(self._vain), share * self._asking)

    def _await(self, tenant_id: int, wait: float | None) -> None:
        if wait:
            self.full.discard(tenant_id)
            self.later[tenant_id] = time.monotonic() + max(FREE_SECONDS, min(wait, LONGEST_WAIT))
        else:
            self.later.pop(tenant_id, None)
            if not self.full:
                self._asked = time.monotonic()
            self.full.add(tenant_id)

    def _return(self, tenant_id: int) -> None:
        self.full.discard(tenant_id)
        self.later.pop(tenant_id, None)
        self.noisy.pop(tenant_id, None)
        self._free.discard(tenant_id)
        self.ring.bring_back(tenant_id)
