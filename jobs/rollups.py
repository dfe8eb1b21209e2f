"""Reading the rollups: numbers for charts and tables, never from the jobs themselves.

All numbers are exact for what had been committed when they were written; percentiles are interpolated within a step of
`jobs.histogram`. Times are aware datetimes. `slugs`: only these tenants' numbers, for an operator who may see no
others; then `Kind.ALL` is their sum and queues and types, which mix tenants, are empty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models.fields.json import KT
from django.db.models.functions import JSONObject

from jobs.histogram import Histogram
from jobs.models.action import ActionResult, OperatorAction
from jobs.models.rollup import Backlog, Forecast, Kind, Rollup, RollupProgress, Step

MINUTES_KEPT = timedelta(hours=48)
"""Longer ago there are hours only."""
HOURS_KEPT = timedelta(days=400)
FORECAST = timedelta(hours=1)
OLD = timedelta(minutes=3)
"""Numbers that reach less far than this are told to be old: a dispatcher that does not run, or cannot keep up."""

DEPLOYS = 20
_OF_POINT = ("at", "due", "completed", "failed", "cancelled", "errors", "late", "ran", "ran_seconds")

Slugs = Collection[str] | None


@dataclass(frozen=True)
class Point:
    """What happened from `at` on, for one step (or, summed up, for several)."""

    at: datetime
    due: int = 0
    """Jobs that came due."""
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    errors: int = 0
    """Attempts that did not end well, those that are tried again included."""
    late: Histogram = field(default_factory=Histogram)
    """From due to the first start."""
    ran: Histogram = field(default_factory=Histogram)
    ran_seconds: float = 0.0

    @property
    def ended(self) -> int:
        return self.completed + self.failed + self.cancelled

    @property
    def failing(self) -> float | None:
        """Which part, from 0 to 1, of what ran to its end failed; None when nothing did."""
        ran = self.completed + self.failed
        return self.failed / ran if ran else None

    def __add__(self, other: Point) -> Point:
        return Point(
            min(self.at, other.at),
            self.due + other.due,
            self.completed + other.completed,
            self.failed + other.failed,
            self.cancelled + other.cancelled,
            self.errors + other.errors,
            self.late + other.late,
            self.ran + other.ran,
            self.ran_seconds + other.ran_seconds,
        )


@dataclass(frozen=True)
class Series:
    """One point for each step of [since, until), empty ones included, oldest first."""

    points: Sequence[Point]
    step: timedelta
    as_of: datetime | None
    """The numbers reach up to here; None: the loop has never run. Points after it are not known yet, not empty."""
    deploys: Sequence[tuple[datetime, str]] = ()
    """What was deployed meanwhile (`operator.deploy`), when and under which name, in order; the latest DEPLOYS. Not
    within a scope of tenants."""

    @property
    def total(self) -> Point:
        return total(self.points)


@dataclass(frozen=True)
class Standing:
    """What is in the queues now."""

    name: str
    waiting: int = 0
    oldest: datetime | None = None
    running: int = 0
    retrying: int = 0
    later: int = 0
    parked: int = 0


@dataclass(frozen=True)
class Progress:
    """How fresh the numbers are; every page that shows some says so."""

    reached: datetime
    """The minutes before it are known."""
    counted: datetime | None
    """When `backlog` was counted; None: not yet."""
    foreseen: datetime | None
    """When `forecast` was counted; None: not yet."""


def progress() -> Progress | None:
    """None: the rollup loop has never run. One statement."""
    row = RollupProgress.objects.first()
    return Progress(row.first, row.counted_at, row.foreseen_at) if row else None


def is_old(reached: datetime | None, now: datetime) -> bool:
    """Whether a page should say that its numbers have stopped."""
    return reached is None or now - reached > OLD


def step_for(since: datetime, until: datetime, now: datetime) -> Step:
    """Minutes for up to three hours of the last two days, else hours."""
    short = until - since <= timedelta(hours=3)
    return Step.MINUTE if short and now - since <= MINUTES_KEPT - timedelta(hours=1) else Step.HOUR


def series(
    kind: Kind,
    name: str,
    since: datetime,
    until: datetime,
    step: Step = Step.MINUTE,
    *,
    slugs: Slugs = None,
) -> Series:
    """The course of one queue, type or tenant, or of all (`Kind.ALL`, name ""). One statement. Hours end with the last
    whole one; the open hour is not in them."""
    size = timedelta(seconds=step)
    row = _series(kind, name, since, until, step, slugs).first()
    found: dict[datetime, Point] = {}
    for point in _points(row.points) if row else ():
        found[point.at] = found[point.at] + point if point.at in found else point
    first = floor(since, step)
    count = max(0, -(-(until - first) // size))
    steps = [first + n * size for n in range(count)]
    deploys = list(zip(row.deployed, row.deploys, strict=True))[::-1] if row and slugs is None else []
    return Series([found.get(at) or Point(at) for at in steps], size, row.first if row else None, deploys)


def _series(kind: Kind, name: str, since: datetime, until: datetime, step: Step, slugs: Slugs) -> Any:
    """In the statement that says how far the numbers reach: a page has no statement to spare."""
    deploys = OperatorAction.objects.filter(
        verb="deploy", result=ActionResult.DONE, at__gte=since, at__lt=until
    ).order_by("-id")
    return RollupProgress.objects.annotate(
        points=_whole(_rows(kind, step, since, until, slugs, [name]), _OF_POINT),
        deployed=ArraySubquery(deploys.values("at")[:DEPLOYS]),
        deploys=ArraySubquery(deploys.values(name=KT("target__deploy"))[:DEPLOYS]),
    )


def totals(
    kind: Kind,
    since: datetime,
    until: datetime,
    *,
    names: Iterable[str] | None = None,
    slugs: Slugs = None,
    step: Step = Step.MINUTE,
) -> dict[str, Point]:
    """The sum of [since, until) by name, for tables of queues, types or tenants. One statement; give `names` for a page
    of many tenants."""
    found: dict[str, Point] = {}
    for row in _rows(kind, step, since, until, slugs, names):
        name = "" if kind == Kind.ALL else row.name
        point = _point(row)
        found[name] = found[name] + point if name in found else point
    return found


def total(points: Iterable[Point]) -> Point:
    """The sum of points; of none: an empty one at the beginning of time."""
    result: Point | None = None
    for point in points:
        result = point if result is None else result + point
    return result or Point(datetime.min.replace(tzinfo=UTC))


def backlog(kind: Kind, *, names: Iterable[str] | None = None, slugs: Slugs = None) -> dict[str, Standing]:
    """What waits and runs, by name, as of `progress().counted`. Names without jobs in the queues are missing. One
    statement."""
    found: dict[str, Standing] = {}
    for row in _of(Backlog, kind, slugs, names):
        name = "" if kind == Kind.ALL else row.name
        before = found.get(name, Standing(name))
        found[name] = Standing(
            name,
            before.waiting + row.waiting,
            min(filter(None, [before.oldest, row.oldest]), default=None),
            before.running + row.running,
            before.retrying + row.retrying,
            before.later + row.later,
            before.parked + row.parked,
        )
    return found


def forecast(
    kind: Kind, *, names: Iterable[str] | None = None, slugs: Slugs = None
) -> dict[str, list[tuple[datetime, int]]]:
    """How many jobs come due in each minute of the next hour, by name, minutes in order, those with none missing; as of
    `progress().foreseen`. Jobs scheduled since are not in it, and what waits already is in `backlog`. One statement."""
    found: dict[str, dict[datetime, int]] = defaultdict(lambda: defaultdict(int))
    for row in _of(Forecast, kind, slugs, names):
        found["" if kind == Kind.ALL else row.name][row.at] += row.due
    return {name: sorted(minutes.items()) for name, minutes in found.items()}


@dataclass(frozen=True)
class Outlook:
    due: Mapping[datetime, int]
    """Jobs that come due, by minute of the next hour; those with none are missing."""
    capacity: float | None
    """The most jobs that ended in one minute in which jobs were waiting longer than 5 s (so that the fleet was busy); None:
    that never happened, so that what it can do is not known. Nor is it told within a scope."""
    as_of: datetime | None
    """When this was counted; None: not yet."""


def outlook(since: datetime, until: datetime, *, slugs: Slugs = None) -> Outlook:
    """The next hour, beside what was managed in [since, until). One statement."""
    managed = _rows(Kind.ALL, Step.MINUTE, since, until, None, [""])
    row = RollupProgress.objects.annotate(
        minutes=_whole(_of(Forecast, Kind.ALL, slugs, None), ("at", "due")),
        points=_whole(managed if slugs is None else managed.none(), _OF_POINT),
    ).first()
    if row is None:
        return Outlook({}, None, None)
    due: dict[datetime, int] = defaultdict(int)
    for minute in row.minutes or ():
        due[_moment(minute["at"])] += minute["due"]
    return Outlook(due, _busiest(_points(row.points)), row.foreseen_at)


def _busiest(points: Iterable[Point]) -> float | None:
    shares = ((point.late.share_within(timedelta(seconds=5)), point.ended) for point in points)
    return (
        float(max((ended for share, ended in shares if share is not None and share < 0.9), default=0)) or None
    )


def floor(moment: datetime, step: int) -> datetime:
    """When the step begins that `moment` lies in, in UTC."""
    moment = moment.astimezone(UTC)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    size = timedelta(seconds=step)
    return midnight + (moment - midnight) // size * size


def _rows(
    kind: Kind,
    step: Step,
    since: datetime,
    until: datetime,
    slugs: Slugs,
    names: Iterable[str] | None,
) -> Any:
    return _of(Rollup, kind, slugs, names).filter(step=step, at__gte=floor(since, step), at__lt=until)


def _of(model: Any, kind: Kind, slugs: Slugs, names: Iterable[str] | None) -> Any:
    """Within a scope, "all" is the sum of its tenants; what mixes tenants is nothing."""
    if slugs is None:
        found = model.objects.filter(kind=kind)
        return found if names is None else found.filter(name__in=list(names))
    if kind == Kind.ALL:
        return model.objects.filter(kind=Kind.TENANT, name__in=list(slugs))
    if kind == Kind.TENANT:
        wanted = slugs if names is None else set(names) & set(slugs)
        return model.objects.filter(kind=Kind.TENANT, name__in=list(wanted))
    return model.objects.none()


def _whole(rows: Any, names: Sequence[str]) -> ArraySubquery:
    """Rows as one value of another row."""
    return ArraySubquery(rows.values(read=JSONObject(**{name: name for name in names})))


def _points(read: Iterable[Any] | None) -> Iterator[Point]:
    """None: Django did not ask, since there can be none."""
    return (_point(Rollup(**{**each, "at": _moment(each["at"])})) for each in read or ())


def _moment(text: str) -> datetime:
    """Of JSON."""
    return datetime.fromisoformat(text).astimezone(UTC)


def _point(row: Rollup) -> Point:
    return Point(
        row.at,
        row.due,
        row.completed,
        row.failed,
        row.cancelled,
        row.errors,
        Histogram(tuple(row.late)),
        Histogram(tuple(row.ran)),
        row.ran_seconds,
    )
