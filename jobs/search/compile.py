"""Terms to a query: names looked up, windows set, contradictions refused. The same for lists, counts and operations."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Subquery

from jobs import holds
from jobs.ids import due_of
from jobs.models import Tenant
from jobs.registry import registry
from jobs.search import payloads, ranges, times
from jobs.search.names import Named, id_of, look_up
from jobs.search.payloads import Match
from jobs.search.ranges import Range
from jobs.search.terms import MAX_LENGTH, MAX_VALUES, WINDOWS, SearchError, Term, parse
from jobs.search.window import Window, days
from jobs.states import FINAL, WAITING, JobState

LOOK_BACK = timedelta(days=7)
"""With `finished:` or `run:` alone, jobs due up to so long before and after are looked at."""
_MOMENT = timedelta(milliseconds=1)
_NAMES = {"type": "job_type__in", "queue": "queue__in", "group": "group__in"}
_BIG = 1 << 63
NAMED = ("overdue", "held", "stuck")
HOLDS = 1000
"""So many holds, the newest, are asked what they stop."""
_HELD_BY = {"queue": "queue__in", "type": "job_type__in", "group": "group__in", "tenant": "tenant_id__in"}
Held = tuple[str, tuple[Any, ...]]
"""A lookup on entries, and the values of what is held."""


@dataclass(frozen=True)
class Query:
    """What is asked for. `due` bounds every statement."""

    terms: tuple[Term, ...]
    due: Window
    now: datetime
    """What is late or runs is judged as of this moment."""
    finished: Window | None = None
    run: Window | None = None
    """In which what waits is to start next."""
    ids: frozenset[UUID] | None = None
    states: frozenset[JobState] | None = None
    """None: any."""
    wanted: dict[str, Any] = field(default_factory=dict)
    """Lookups on columns that job, timer and entry share."""
    unwanted: dict[str, Any] = field(default_factory=dict)
    crons: tuple[int, ...] = ()
    payloads: tuple[Match, ...] = ()
    errors: tuple[str, ...] = ()
    actions: tuple[int, ...] = ()
    workers: tuple[int, ...] = ()
    named: str = ""
    """overdue, held or stuck."""
    held: tuple[Held, ...] | None = None
    """What holds stop, with `named` held; None: everything."""
    late: Range[timedelta] | None = None
    ran: Range[timedelta] | None = None
    attempts: Range[int] | None = None
    notes: tuple[str, ...] = ()
    """What is worth telling beside the result."""

    def __str__(self) -> str:
        """As a line that means the same at any later time: windows are absolute and names are spelled out."""
        said = [str(term) for term in self.terms if term.name not in WINDOWS]
        return " ".join([*said, *self.windows])

    @property
    def windows(self) -> list[str]:
        """The terms that bound it in time."""
        found = []
        if self.ids is None or any(term.name == "due" for term in self.terms):
            found.append(f"due:{_span(self.due)}")
        if self.run:
            found.append(f"run:{_span(self.run)}")
        if self.finished:
            found.append(f"finished:{_span(self.finished)}")
        return found

    @property
    def is_empty(self) -> bool:
        """Nothing but windows and ranges: all jobs, or nearly so."""
        return not any(term.name not in (*WINDOWS, "late", "ran", "attempt") for term in self.terms)

    @property
    def is_of_rows(self) -> bool:
        """It asks what only timers, entries and outcomes know."""
        return bool(self.errors or self.actions or self.late or self.ran or self.attempts or self.run)

    @property
    def tenants(self) -> list[int] | None:
        found = self.wanted.get("tenant_id__in")
        return None if found is None else list(found)


def compile_query(
    text: str,
    now: datetime,
    *,
    scope: Collection[int] | None = None,
    default: Window | None = None,
    limit: int = MAX_LENGTH,
) -> Query:
    """What a line asks for. `scope`: ids of the tenants that exist for whoever asks; None: all. `default`: the window of
    due times when the line has none; None: yesterday until tomorrow. SearchError says what cannot be understood."""
    terms, known = look_up(parse(text, limit), scope)
    return _Compiler(terms, known, now, scope).query(default)


class _Compiler:
    def __init__(
        self,
        terms: Sequence[Term],
        known: dict[str, Named],
        now: datetime,
        scope: Collection[int] | None,
    ) -> None:
        self.terms, self.known, self.now, self.scope = list(terms), known, now, scope
        self.said = {term.name: term for term in terms if not term.negated}
        self.excluded = {term.name: term for term in terms if term.negated}
        self.notes: list[str] = []

    def query(self, default: Window | None) -> Query:
        ids = self._ids()
        finished, run = self._window("finished"), self._window("run")
        wanted: dict[str, Any] = {}
        unwanted: dict[str, Any] = {}
        for name, lookup in _NAMES.items():
            if term := self.said.get(name):
                wanted[lookup] = self._types(term) if name == "type" else list(term.values)
            if term := self.excluded.get(name):
                unwanted[lookup] = self._types(term) if name == "type" else list(term.values)
        self._tenants(wanted, unwanted)
        return Query(
            terms=tuple(self.terms),
            due=self._due(default, finished or run, ids),
            now=self.now,
            finished=finished,
            run=run,
            ids=ids,
            states=self._states(finished),
            wanted=wanted,
            unwanted=unwanted,
            crons=self._numbers("cron"),
            payloads=tuple(
                payloads.match(term, wanted.get(_NAMES["type"]))
                for term in self.terms
                if payloads.is_payload(term)
            ),
            errors=self.said["error"].values if "error" in self.said else (),
            actions=self._numbers("action"),
            workers=self._numbers("worker"),
            named=self._named(),
            held=self._held(),
            late=ranges.lengths(self.said["late"]) if "late" in self.said else None,
            ran=ranges.lengths(self.said["ran"]) if "ran" in self.said else None,
            attempts=ranges.numbers(self.said["attempt"]) if "attempt" in self.said else None,
            notes=tuple(self.notes),
        )

    def _window(self, name: str) -> Window | None:
        return times.window(self.said[name], self.now) if name in self.said else None

    def _due(self, default: Window | None, other: Window | None, ids: frozenset[UUID] | None) -> Window:
        """`other`: when its jobs end, or start."""
        if term := self.said.get("due"):
            return times.window(term, self.now)
        if ids:
            dues = [due_of(each) for each in ids]
            return Window(min(dues), max(dues) + _MOMENT)
        if other:
            return Window(other.start - LOOK_BACK, other.end + LOOK_BACK)
        return default or days(-1, 1)

    def _ids(self) -> frozenset[UUID] | None:
        """Those of id: and of the jobs that hold the keys; the line then names the ids."""
        found: set[UUID] | None = None
        if term := self.said.get("id"):
            found = {_id(value, term) for value in term.values}
        if term := self.said.get("key"):
            held = {job_id for value in term.values for job_id in self.known[value].jobs}
            if len(held) > MAX_VALUES:
                raise SearchError(
                    f"More than {MAX_VALUES} jobs hold these keys.",
                    term.start,
                    term.end,
                    "Write one key, or add tenant:",
                )
            if not held:
                self.notes.append(
                    "No job holds this key now. A key is held until its job has ended, or for the time that was asked for."
                )
            found = held if found is None else found & held
            ids = Term("id", tuple(sorted(map(str, found))), term.start, term.end)
            self.terms = [each for each in self.terms if each.name not in ("id", "key")] + (
                [ids] if found else [term]
            )
        return None if found is None else frozenset(found)

    def _types(self, term: Term) -> list[str]:
        known = registry.names()
        found: list[str] = []
        for value in term.values:
            matches = [name for name in known if fnmatchcase(name, value)] if "*" in value else [value]
            if not matches:
                raise SearchError(
                    f"No registered type is like “{value}”.", term.start, term.end, _near(value, known)
                )
            if value not in known and matches == [value]:
                self.notes.append(f"No type “{value}” is registered here. {_near(value, known)}".strip())
            found += matches
        if len(found) > MAX_VALUES:
            raise SearchError(f"That is more than {MAX_VALUES} types.", term.start, term.end)
        return found

    def _tenants(self, wanted: dict[str, Any], unwanted: dict[str, Any]) -> None:
        """As ids, as values: with a subquery in their place the planner takes a rare tenant for a common one."""
        if term := self.excluded.get("tenant"):
            unwanted["tenant_id__in"] = self._ids_of(term)
        if term := self.said.get("tenant"):
            wanted["tenant_id__in"] = self._ids_of(term)
        elif self.scope is not None:
            wanted["tenant_id__in"] = sorted(self.scope)

    def _ids_of(self, term: Term) -> list[int]:
        found = {value: self.known[value].tenant for value in term.values}
        for value, tenant_id in found.items():
            if tenant_id is None:
                tenants = (
                    Tenant.objects.all() if self.scope is None else Tenant.objects.filter(pk__in=self.scope)
                )
                near = tenants.filter(slug__istartswith=value[:3]).values_list("slug", flat=True)[:200]
                raise SearchError(
                    f"There is no tenant “{value}”.", term.start, term.end, _near(value, list(near))
                )
        return sorted({tenant_id for tenant_id in found.values() if tenant_id is not None})

    def _states(self, finished: Window | None) -> frozenset[JobState] | None:
        states: frozenset[JobState] | None = None
        if term := self.said.get("state"):
            states = _read_states(term)
        if term := self.excluded.get("state"):
            states = (states or frozenset(JobState)) - _read_states(term)
        for name, of, words in self._implied(finished):
            term = self.said[name]
            states = of if states is None else states & of
            if not states:
                raise SearchError(
                    f"{name}: is about {words}, which the other terms exclude.", term.start, term.end
                )
        if states is not None and not states:
            term = self.excluded["state"]
            raise SearchError("No state is left.", term.start, term.end)
        return states

    def _implied(self, finished: Window | None) -> list[tuple[str, frozenset[JobState], str]]:
        """Which states terms are about, by name, and what these are called."""
        implied: list[tuple[str, frozenset[JobState], str]] = []
        if finished:
            implied.append(("finished", FINAL, "jobs that have ended"))
        if "run" in self.said:
            implied.append(("run", WAITING, "jobs that wait"))
        if "error" in self.said:
            implied.append(("error", frozenset({JobState.FAILED}), "failed jobs"))
        if "worker" in self.said:
            implied.append(("worker", frozenset({JobState.RUNNING}), "running jobs"))
        if "ran" in self.said:
            implied.append(("ran", FINAL | {JobState.RUNNING}, "jobs that run or have ended"))
        if self._named() == "stuck":
            implied.append(("is", frozenset({JobState.RUNNING}), "running jobs"))
        elif self._named():
            implied.append(("is", frozenset({JobState.QUEUED}), "queued jobs"))
        return implied

    def _numbers(self, name: str) -> tuple[int, ...]:
        if not (term := self.said.get(name)):
            return ()
        for value in term.values:
            if not (value.isascii() and value.isdigit() and int(value) < _BIG):
                raise SearchError(f"{name}: takes numbers, not “{value}”.", term.start, term.end)
        return tuple(int(value) for value in term.values)

    def _named(self) -> str:
        if not (term := self.said.get("is")):
            return ""
        if len(term.values) > 1 or term.values[0] not in NAMED:
            near = _near(term.values[0], NAMED) or f"Write is:{' or is:'.join(NAMED)}"
            raise SearchError("is: takes one of overdue, held and stuck.", term.start, term.end, near)
        return term.values[0]

    def _held(self) -> tuple[Held, ...] | None:
        """What is held now, as lookups on entries."""
        if self._named() != "held":
            return ()
        keys: dict[str, list[Any]] = {}
        tenant = Subquery(Tenant.objects.filter(slug=OuterRef("key")).values("id"))
        standing = holds.standing().values_list("scope", "key", tenant)[:HOLDS]
        for scope, key, tenant_id in standing:
            keys.setdefault(scope, []).append(tenant_id if scope == "tenant" else key)
        if not keys:
            self.notes.append("Nothing is held now.")
        if "all" in keys:
            return None
        return tuple((_HELD_BY[scope], tuple(found)) for scope, found in sorted(keys.items()))


def _read_states(term: Term) -> frozenset[JobState]:
    known = [state.value for state in JobState]
    for value in term.values:
        if value not in known:
            raise SearchError(
                f"There is no state “{value}”.",
                term.start,
                term.end,
                _near(value, known) or f"There are {', '.join(known)}.",
            )
    return frozenset(JobState(value) for value in term.values)


def _id(value: str, term: Term) -> UUID:
    if (found := id_of(value)) is None:
        raise SearchError(f"“{value[:60]}” is no job id.", term.start, term.end)
    return found


def _near(value: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(value.strip("*"), known, 1)
    return f"Did you mean {near[0]}?" if near else ""


def _span(window: Window) -> str:
    return f"{times.moment_text(window.start)}..{times.moment_text(window.end)}"
