"""The rules by which a claim takes an entry or passes it over, each saying in words why.

What is judged was read by the statement of the claim itself (`jobs/sql/parts/rules.sql`): a rule only reads off which of
its parts said no. All are asked, so that whoever lifts one reason sees the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

MOST_AHEAD = 1000
"""So far a line is counted."""


@dataclass(frozen=True, slots=True)
class Reason:
    """`code` is stable, for programs; `blocks` is False for what only tells how things stand."""

    code: str
    text: str
    blocks: bool = True
    until: datetime | None = None
    """When it ends by itself, as far as is known."""

    def __str__(self) -> str:
        return self.text


class Facts(NamedTuple):
    """One row of why.sql."""

    now: datetime
    ahead: int
    tenant: str | None
    allowed: int
    """Entries of the tenant that a claim could take now, up to this one in its line."""
    wait: float | None
    stopped: bool
    max_running: int | None
    running: int
    max_here: int | None
    here: int
    rate: float | None
    tokens: float | None
    size: int
    """The same of the queue."""
    queue_wait: float | None
    queue_stopped: bool
    draining: bool
    queue_max_running: int | None
    queue_running: int
    queue_rate: float | None
    queue_tokens: float | None
    type_is_known: bool
    queue_is_served: bool


class Held(NamedTuple):
    """One hold that is in force on the entry's target."""

    scope: str
    key: str
    reason: str
    by: str
    since: datetime
    until: datetime | None


class Case(NamedTuple):
    """What is asked about."""

    facts: Facts
    holds: list[Held]
    queue: str
    job_type: str


Rule = Callable[[Case], Iterator[Reason]]


def held(case: Case) -> Iterator[Reason]:
    """Everything, its queue, tenant, type or group is paused."""
    for hold in case.holds:
        what = "everything is" if hold.scope == "all" else f"{hold.scope} {hold.key} is"
        text = f"{what} paused since {moment(hold.since)}"
        text += f" by {hold.by}" if hold.by else ""
        text += f" until {moment(hold.until)}" if hold.until else ""
        text += f": {hold.reason}" if hold.reason else ""
        word = "held" if hold.scope in ("type", "group") else "paused"
        yield Reason(f"{word}_{hold.scope}", text, until=hold.until)


def tenant_limit(case: Case) -> Iterator[Reason]:
    facts = case.facts
    for code, where, most, used in (
        ("tenant_limit", "", facts.max_running, facts.running),
        ("tenant_queue_limit", f" in queue {case.queue}", facts.max_here, facts.here),
    ):
        if most is not None and used + facts.ahead >= most:
            yield Reason(
                code,
                f"tenant {facts.tenant} is at its limit{where}: {min(used, most)} of {most}{_line(facts)}",
            )


def tenant_rate(case: Case) -> Iterator[Reason]:
    facts = case.facts
    if facts.tokens is not None and facts.tokens < facts.ahead + 1:
        yield _out_of_tokens("tenant_rate", f"tenant {facts.tenant}", facts, facts.rate, facts.tokens)


def queue_limit(case: Case) -> Iterator[Reason]:
    facts, most = case.facts, case.facts.queue_max_running
    if most is not None and facts.queue_running + facts.ahead >= most:
        used = min(facts.queue_running, most)
        yield Reason("queue_limit", f"queue {case.queue} is at its limit: {used} of {most}{_line(facts)}")


def queue_rate(case: Case) -> Iterator[Reason]:
    facts = case.facts
    if facts.queue_tokens is not None and facts.queue_tokens < facts.ahead + 1:
        yield _out_of_tokens("queue_rate", f"queue {case.queue}", facts, facts.queue_rate, facts.queue_tokens)


def draining(case: Case) -> Iterator[Reason]:
    """Of the two ways in which a queue has no room that its own row does not tell of: held, and coming back slowly."""
    facts = case.facts
    if facts.draining:
        blocks = facts.size <= facts.ahead and not any(
            reason.blocks for rule in (held, queue_limit, queue_rate) for reason in rule(case)
        )
        yield Reason("draining", f"queue {case.queue} was paused and drains at a given rate", blocks)


def worker(case: Case) -> Iterator[Reason]:
    if not case.facts.type_is_known:
        yield Reason("no_worker_for_type", f"no live worker knows the type {case.job_type}")
    elif not case.facts.queue_is_served:
        yield Reason(
            "no_worker_for_queue", f"no live worker that knows its type serves the queue {case.queue}"
        )


def line(case: Case) -> Iterator[Reason]:
    """Others of its tenant are first; of those a claim takes as many as may start."""
    if ahead := case.facts.ahead:
        number = f"{ahead:,} or more" if ahead >= MOST_AHEAD else f"{ahead:,}"
        yield Reason(
            "in_line", f"{number} of its tenant's jobs are before it in queue {case.queue}", blocks=False
        )


RULES: tuple[Rule, ...] = (
    held,
    tenant_limit,
    tenant_rate,
    queue_limit,
    queue_rate,
    draining,
    worker,
    line,
)


def moment(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M:%S UTC}"


def _line(facts: Facts) -> str:
    """Its place in its tenant's line."""
    return f", {ordinal(facts.ahead + 1)} in line" if facts.ahead < MOST_AHEAD else ", far back in line"


def _out_of_tokens(code: str, whose: str, facts: Facts, rate: float | None, tokens: float) -> Reason:
    if not rate:
        return Reason(code, f"{whose} has a rate of 0: none may start")
    until = facts.now + timedelta(seconds=max(0.0, facts.ahead + 1 - tokens) / rate)
    return Reason(
        code, f"{whose} is at its rate, {each(rate)}; this one is next at {moment(until)}", until=until
    )


def each(rate: float) -> str:
    """A rate per second in the unit that reads best."""
    for unit, seconds in (("second", 1), ("minute", 60), ("hour", 3600)):
        if rate * seconds >= 1 or unit == "hour":
            return f"{rate * seconds:,.6g} a {unit}" if unit != "hour" else f"{rate * seconds:,.6g} an hour"
    raise AssertionError


def ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"
