"""What a child is doing, in memory that its supervisor can read after the child was killed.

An attempt counts only if its body may have started: the slot is written just before a body starts and cleared when its
result is in the database; in between it says that the body has ended, so that nobody blames it for a crash. No lock: each field has one writer.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import tempfile
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

_RENEWED, _BEAT, _LEASE, _STOPPING = 0, 8, 16, 24
"""Where they stand in the header."""
_SECONDS = struct.Struct("=d")
_SLOT = struct.Struct("=B16sd")
_HEADER_SIZE = 64
_FREE, _STARTED, _GUARDED, _ENDED = 0, 1, 2, 3
_TAKEN = re.compile(rb"[^\0]")

NEVER = float("inf")


class Started(NamedTuple):
    job_id: UUID
    deadline: float
    """Boot time at which the process is to be killed for this body."""
    guarded: bool
    """Its body must not outlive the lease: it runs under a limit, a concurrency key or exclusively."""


class Slots:
    """`count` slots and a header: when the supervisor renewed the lease last and for how many seconds, when the child was
    alive last, and whether it is to stop claiming. Times are boot times in seconds."""

    def __init__(self, fd: int, count: int) -> None:
        self.fd, self.count = fd, count
        self._memory = mmap.mmap(fd, _HEADER_SIZE + count * _SLOT.size)
        self._free = deque(range(count))

    @classmethod
    def create(cls, count: int, lease: float) -> Slots:
        """`lease` in seconds is the supervisor's: settings that have changed since must not give a child another."""
        size = _HEADER_SIZE + count * _SLOT.size
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("punctual-slots")
        else:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        try:
            os.truncate(fd, size)
            os.set_inheritable(fd, True)
            slots = cls(fd, count)
            slots._put(_LEASE, lease)
            return slots
        except BaseException:
            os.close(fd)
            raise

    def close(self) -> None:
        self._memory.close()
        os.close(self.fd)

    # the child writes

    def start(self, job_id: UUID, deadline: float, guarded: bool) -> int:
        """Note a body that is about to start; returns its slot."""
        slot = self._free.popleft()
        place = _HEADER_SIZE + slot * _SLOT.size
        _SLOT.pack_into(self._memory, place, _FREE, job_id.bytes, deadline)
        self._memory[place] = (
            _GUARDED if guarded else _STARTED
        )  # last: a torn record is never read as started
        return slot

    def end(self, slot: int) -> None:
        """The body has returned; its result is still to be written."""
        self._memory[_HEADER_SIZE + slot * _SLOT.size] = _ENDED

    def clear(self, slot: int) -> None:
        self._memory[_HEADER_SIZE + slot * _SLOT.size] = _FREE
        self._free.append(slot)

    def beat(self, now: float) -> None:
        self._put(_BEAT, now)

    # the supervisor writes

    def renewed(self, now: float) -> None:
        self._put(_RENEWED, now)

    def stop_claiming(self) -> None:
        self._memory[_STOPPING] = 1

    # either reads

    @property
    def beat_at(self) -> float:
        return self._seconds(_BEAT)

    @property
    def lease(self) -> float:
        return self._seconds(_LEASE)

    def lease_left(self, now: float) -> float:
        return self._seconds(_RENEWED) + self.lease - now

    @property
    def stopping(self) -> bool:
        return bool(self._memory[_STOPPING])

    def started(self) -> Iterator[Started]:
        """Bodies that run; ValueError when this was closed."""
        for state, job_id, deadline in self._records():
            if state in (_STARTED, _GUARDED):
                yield Started(UUID(bytes=job_id), deadline, state == _GUARDED)

    def ended(self) -> Iterator[UUID]:
        """Jobs whose bodies have returned and whose results may not have been written."""
        for state, job_id, _ in self._records():
            if state == _ENDED:
                yield UUID(bytes=job_id)

    def _put(self, place: int, seconds: float) -> None:
        _SECONDS.pack_into(self._memory, place, seconds)

    def _seconds(self, place: int) -> float:
        return float(_SECONDS.unpack_from(self._memory, place)[0])

    def _records(self) -> Iterator[tuple[int, bytes, float]]:
        """Those in use. Most of thousands are free: a supervisor that read each of them spent a seventh of a core on twenty
        idle children."""
        for taken in _TAKEN.finditer(self._memory[_HEADER_SIZE :: _SLOT.size]):
            yield _SLOT.unpack_from(self._memory, _HEADER_SIZE + taken.start() * _SLOT.size)
