"""What becomes of slots while an earlier run of their definition is unfinished (CRON.md 6). Pure; judged at the slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.cron.policy import OVERLAPS, require_one_of
from jobs.firing import Firing

BUFFER_LIMIT = 100
"""Starts that wait, at most."""

START, WAIT, SKIP = "start", "wait", "skip"


@dataclass(slots=True)
class Verdict:
    firing: Firing
    what: str
    reason: str = ""


@dataclass(slots=True)
class Judged:
    start_waiting: bool = False
    """Nothing runs any more: the first of the starts that wait begins now."""
    overtaken: int = 0
    """So many of the waiting starts, the oldest, give way to a later slot."""
    cancel: bool = False
    """The run in the way is asked to stop."""
    verdicts: list[Verdict] = field(default_factory=list)
    """For the firings that would run, in their order."""


def judge(policy: str, firings: Sequence[Firing], *, busy: bool, waiting: int) -> Judged:
    """`firings`: those that would run, oldest first. `busy`: a run is unfinished. `waiting`: so many starts wait.
    CronError for a policy that is none."""
    require_one_of("overlap", policy, OVERLAPS)
    judged = Judged()
    if policy == "allow_all":
        judged.verdicts = [Verdict(firing, START) for firing in firings]
    if waiting and not busy:
        judged.start_waiting, busy, waiting = True, True, waiting - 1
    if policy == "allow_all":
        return judged
    if policy == "cancel_other":
        return _last_wins(firings, judged, busy=busy, waiting=waiting)
    for firing in firings:
        verdict = _verdict(policy, firing, busy=busy or waiting > 0, waiting=waiting)
        waiting += verdict.what == WAIT
        busy = busy or verdict.what == START
        judged.verdicts.append(verdict)
    return judged


def _verdict(policy: str, firing: Firing, *, busy: bool, waiting: int) -> Verdict:
    if not busy:
        return Verdict(firing, START)
    if policy == "skip" and firing.outcome != "late":
        return Verdict(firing, SKIP, "overlap: an earlier run has not ended")
    # Missed slots that all shall run are run one after another: skipping would eat them.
    if policy == "buffer_one" and waiting:
        return Verdict(firing, SKIP, "overlap: a start waits already")
    if waiting >= BUFFER_LIMIT:
        return Verdict(firing, SKIP, f"overlap: {BUFFER_LIMIT} starts wait already")
    return Verdict(firing, WAIT, "overlap: an earlier run has not ended")


def _last_wins(firings: Sequence[Firing], judged: Judged, *, busy: bool, waiting: int) -> Judged:
    judged.verdicts = [Verdict(firing, SKIP, "overlap: a later slot came as well") for firing in firings[:-1]]
    if not firings:
        judged.cancel = busy and waiting > 0
        return judged
    if judged.start_waiting:  # it gives way before it has begun
        judged.start_waiting, busy, waiting = False, False, waiting + 1
    judged.overtaken = waiting
    judged.cancel = busy
    last = firings[-1]
    judged.verdicts.append(
        Verdict(last, WAIT, "overlap: an earlier run was asked to stop") if busy else Verdict(last, START)
    )
    return judged
