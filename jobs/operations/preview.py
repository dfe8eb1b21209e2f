"""Preview: what an operation would do, by the same search that it will use. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from jobs import clock, scope
from jobs.operations.limits import LONGEST, RATE, TYPED, ceiling_of, must_ask
from jobs.search import Query, SearchError, compile_query, find
from jobs.search.count import Count, count
from jobs.search.terms import Term, parse
from jobs.states import CANCELLABLE, FINAL, RETRYABLE, WAITING, JobState

FITTING: dict[str, frozenset[JobState]] = {
    "retry": RETRYABLE,
    "cancel": CANCELLABLE,
    "reschedule": WAITING,
    "prioritize": WAITING,
    "move": WAITING,
}
"""In these states a verb changes a job; all others it leaves alone."""
SAMPLES = 10


@dataclass(frozen=True)
class Preview:
    query: Query
    """What the operation will look through: with absolute windows, and in the states that the verb can change."""
    count: Count
    samples: Sequence[Any]
    """The latest of the jobs."""
    ceiling: int
    cutoff: datetime

    @property
    def must_type(self) -> bool:
        """Whether the confirmation asks for the number."""
        return self.count.how != "exact" or (self.count.number or 0) >= TYPED

    @property
    def too_many(self) -> bool:
        return self.count.how == "exact" and (self.count.number or 0) > self.ceiling

    @property
    def must_ask(self) -> bool:
        """Whether a second person approves it before it begins."""
        return must_ask(self.count.number)

    @property
    def takes(self) -> timedelta | None:
        """At the usual rate; None: not known."""
        return None if self.count.number is None else timedelta(seconds=self.count.number / RATE)

    @property
    def to_type(self) -> str:
        """What is typed to confirm."""
        return str(self.count.number) if self.count.how == "exact" else "all"


def preview(user: Any, verb: str, line: str, using: str = "default") -> Preview:
    """SearchError when the line cannot be understood, finds every job or none that the verb could change."""
    now = clock.asked(using)
    query = narrowed(verb, line, now, scope.scope_of(user))
    return Preview(
        query, count(query, using), find(query, size=SAMPLES, using=using).jobs, ceiling_of(user), now
    )


def narrowed(verb: str, line: str, now: datetime, within: scope.Scope) -> Query:
    """The query in absolute windows and in the states that the verb can change. What it finds is what it will touch."""
    asked = compile_query(line, now, scope=within)
    if asked.is_empty:
        raise SearchError(
            "An operation on all jobs there are is refused.",
            0,
            max(1, len(line)),
            "Add a tenant, type, queue, group or state.",
        )
    fitting = FITTING[verb]
    states = fitting if asked.states is None else asked.states & fitting
    if not states:
        raise SearchError(f"None of these jobs can be changed by {verb}.", 0, len(line), _about(verb))
    kept = [term for term in asked.terms if term.name != "state"]
    if not asked.named and not asked.workers and not (asked.errors and states <= FINAL):
        kept.append(Term("state", tuple(sorted(state.value for state in states)), 0, 0))
    query = replace(asked, terms=tuple(kept), states=states)
    parse(str(query), LONGEST)  # which is what is kept, and compiled again by whoever works on it
    return query


def _about(verb: str) -> str:
    return f"It is for jobs that are {', '.join(sorted(state.value for state in FITTING[verb]))}."
