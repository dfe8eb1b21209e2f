"""Find: one page of jobs in order, from one place to the next, and how much of the window was looked at.

First the whole window in one statement. When that takes too long the window is taken apart and walked from where the
page begins, until the page is full or the patience is over; then the answer says how far the look went.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from jobs.clock import boottime
from jobs.ids import ceil_ms, due_of, first_id
from jobs.models import Job, QueueEntry
from jobs.search import guard
from jobs.search.compile import Query
from jobs.search.guard import TooSlow, bounded
from jobs.search.sources import sources
from jobs.search.window import Window

SLICES = 64
"""A window that takes too long is begun with this part of it."""
GROWTH = 4
_MOMENT = timedelta(milliseconds=1)

Place = tuple[datetime, UUID]
"""In the order of a list: a due time (or an end, with `finished:`) and the job."""


@dataclass
class Found:
    jobs: list[Any]
    """Jobs with `state`, `attempt`, `run_at`, `finished_at`, `error` and their tenant; without payloads; latest first."""
    older: Place | None = None
    """Where the next page begins; None: there are no more, as far as was looked."""
    newer: Place | None = None
    back_to: datetime | None = None
    """The look ended here for want of time; older jobs may fit. None: complete."""

    @property
    def is_complete(self) -> bool:
        return self.back_to is None


def read_place(text: str) -> Place | None:
    """The place that a link names: `time~id`, or an id alone. ValueError for anything else."""
    if not text:
        return None
    try:
        moment, tilde, tail = text.rpartition("~")
        job_id = UUID(tail)
        due_at = due_of(job_id)
        at = datetime.fromisoformat(moment) if tilde else due_at
        if at.tzinfo is None:
            raise ValueError
    except (ValueError, OverflowError):
        raise ValueError("This is no place in the list.") from None
    return at, job_id


def place_text(place: Place) -> str:
    return f"{place[0].isoformat()}~{place[1]}"


def find(
    query: Query,
    *,
    after: Place | None = None,
    before: Place | None = None,
    size: int = 50,
    using: str = "default",
) -> Found:
    """The page that comes after (older) or before (newer) this place; neither: the first. Takes twice the guard's
    patience at most."""
    by_end = query.finished is not None
    walk = Walk(query, before or after, size + 1, using, up=before is not None, by_end=by_end)
    rows = walk.run()
    more, rows = len(rows) > size, rows[:size]
    if before:
        rows.reverse()
    found = Found(_load(rows, using), back_to=walk.back_to)
    if rows:
        found.older = rows[-1] if before or more else None
        found.newer = rows[0] if (more if before else after is not None) else None
    if walk.back_to and not before:
        least = _LEAST if query.finished else first_id(ceil_ms(walk.back_to))
        found.older = (walk.back_to, least)
    return found


_LEAST = UUID(int=0)


class Walk:
    """From a place on, up or down: by end with `by_end`, else by due time."""

    def __init__(
        self, query: Query, place: Place | None, limit: int, using: str, *, up: bool, by_end: bool
    ) -> None:
        self.query, self.place, self.limit, self.using = query, place, limit, using
        self.up, self.by_end = up, by_end
        self.back_to: datetime | None = None
        """Where the look ended for want of time."""

    def run(self) -> list[Place]:
        window = self.query.finished if self.by_end and self.query.finished else self.query.due
        if self.place:
            window = window.since(self.place[0]) if self.up else window.upto(self.place[0])
        begun = boottime()
        try:
            return self._look(window, self.limit, guard.PATIENCE)
        except TooSlow:
            return self._slices(window, begun + 2 * guard.PATIENCE.total_seconds())

    def _slices(self, window: Window, until: float) -> list[Place]:
        size, found = max((window.end - window.start) / SLICES, _MOMENT), list[Place]()
        while window.start < window.end and len(found) < self.limit:
            part = window.first(size) if self.up else window.last(size)
            left = timedelta(seconds=until - boottime())
            try:
                if left <= timedelta():
                    raise TooSlow
                found += self._look(part, self.limit - len(found), left)
            except TooSlow:
                self.back_to = window.start if self.up else window.end
                break
            window = Window(part.end, window.end) if self.up else Window(window.start, part.start)
            size *= GROWTH
        return found

    def _look(self, window: Window, limit: int, patience: timedelta) -> list[Place]:
        due = self.query.due if self.by_end else window
        query = replace(self.query, finished=window) if self.by_end else self.query
        parts = [
            self._ordered(source)[:limit] for source in sources(query, due, self.using, by_end=self.by_end)
        ]
        if not parts:
            return []
        sign = "" if self.up else "-"
        if len(parts) == 1:
            found = parts[0]
        else:
            found = parts[0].union(*parts[1:], all=True).order_by(f"{sign}at", f"{sign}job_id")[:limit]
        with bounded(self.using, patience):
            return list(found)

    def _ordered(self, source: QuerySet[Any]) -> QuerySet[Any]:
        at = "finished_at" if self.by_end else "due_at"
        key = "id" if source.model is Job else "job_id"
        side, sign = ("gt", "") if self.up else ("lt", "-")
        if source.model is QueueEntry:  # its key is the id alone, which is in the order of due times
            source = source.filter(**{f"{key}__{side}": self.place[1]}) if self.place else source
            return source.order_by(f"{sign}{key}")
        if self.place and self.by_end:
            beside = Q(**{f"{at}__{side}": self.place[0]}) | Q(**{f"{key}__{side}": self.place[1]})
            source = source.filter(Q(**{f"{at}__{side}e": self.place[0]}) & beside)
        elif self.place:
            source = source.filter(**{f"{key}__{side}": self.place[1]})
        return source.order_by(f"{sign}{at}", f"{sign}{key}")


def _load(places: list[Place], using: str) -> list[Any]:
    """The jobs at these places, in this order, each in the state that it is in now."""
    if not places:
        return []
    ids = [job_id for _, job_id in places]
    dues = [due_of(job_id) for job_id in ids]
    jobs = Job.objects.using(using).with_state(min(dues), max(dues) + _MOMENT).filter(pk__in=ids)
    jobs = jobs.annotate(
        attempt=Coalesce("_outcome__attempt", "entry__attempt", Value(0)),
        run_at=F("entry__run_at"),
        finished_at=F("_outcome__finished_at"),
        error=F("_outcome__error"),
        fingerprint=F("_outcome__error_fingerprint"),
    )
    found = {job.pk: job for job in jobs.defer("payload").select_related("tenant")}
    return [found[job_id] for job_id in ids if job_id in found]
