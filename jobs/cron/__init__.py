"""Cron expression + time zone -> instants. Owns the grammar and the rule for daylight saving time: docs/cron.md.

Pure: no Django, no clock unless asked for the warnings of today. `next`, `prev` and `between` describe one
set of fires, on every machine with the same tz data.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from jobs.cron.advice import coming_shifts
from jobs.cron.grammar import MAX_LENGTH, parse
from jobs.cron.phrase import phrase
from jobs.cron.recurrence import Fires, Interval, Once, Recurrence, utc
from jobs.cron.rule import Rule
from jobs.cron.walk import EveryReading, FirstReached, Walk
from jobs.cron.walls import Walls
from jobs.cron.zones import zone
from jobs.errors import CronError, describe

__all__ = [
    "DST_MODES",
    "MAX_LENGTH",
    "Cron",
    "CronError",
    "Fires",
    "Interval",
    "Once",
    "Recurrence",
    "recurrence",
    "zone",
]

DST_MODES = ("cron", "skip", "literal")
"""cron: a skipped time runs when the gap ends, a repeated one once; every-hour schedules follow elapsed time.
skip: a skipped time is dropped, a repeated one runs once. literal: every minute whose wall reading matches."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime(1, 1, 3, tzinfo=UTC)
LAST = datetime(9999, 12, 29, tzinfo=UTC)
"""No fires outside: closer to its ends, the calendar cannot hold every zone's wall time."""


WHOLE_MINUTES = 1973
"""From this year on no zone is off by seconds: all fires are on whole minutes, and so is what they depend on."""
REMEMBERED = 100
"""Answers of `next` that an object keeps: many definitions say the same rule, and each is asked for the same slots."""


@lru_cache(maxsize=2048)
def _compiled(expression: str) -> tuple[Rule, Walls]:
    rule = parse(expression)
    return rule, Walls(rule)


class Cron:
    """One schedule. Aware datetimes in, UTC out; CronError for a naive one. Immutable, safe between threads."""

    def __init__(self, expression: str, tz: str = "UTC", dst: str = "cron") -> None:
        if dst not in DST_MODES:
            raise CronError("dst", f"{describe(dst)} is not one of {', '.join(DST_MODES)}")
        if not isinstance(expression, str):
            raise CronError("expression", f"must be text, not {type(expression).__name__}")
        self.expression, self.tz, self.dst = expression, tz, dst
        self._zone = zone(tz)
        self._rule, self._walls = _compiled(expression)
        self._walk = _walk(self._rule, self._walls, self._zone, dst)
        self._known: dict[datetime, datetime | None] = {}

    def __repr__(self) -> str:
        return f"Cron({self.expression!r}, tz={self.tz!r}, dst={self.dst!r})"

    @property
    def canonical(self) -> str:
        """The same schedule in one spelling: sorted lists, `*` for a full field, 0 for Sunday."""
        return self._rule.canonical

    @property
    def is_hourly(self) -> bool:
        """The hour field matches all 24 hours."""
        return self._rule.is_hourly

    @property
    def description(self) -> str:
        """In words: "at 02:30 on Monday". The zone is not said."""
        return phrase(self._rule)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Legal but suspicious, and what the zone's next jumps of the clock will do to it."""
        return self.warnings_at(datetime.now(UTC))

    def warnings_at(self, now: datetime) -> tuple[str, ...]:
        """`warnings` as of `now`: looks 400 days ahead for jumps of the clock."""
        moment = _utc("now", now)
        if self.is_hourly and self.dst != "skip":
            return self._rule.warnings  # follows elapsed time: nothing a jump could skip or double
        return (*self._rule.warnings, *coming_shifts(self._walls, self._zone, moment, self.dst))

    def next(self, after: datetime) -> datetime | None:
        """The first fire later than `after`; None when the calendar ends first, or 100 gaps in a row drop it."""
        moment = max(_utc("after", after), FIRST)
        if moment.year >= WHOLE_MINUTES:
            moment = moment.replace(second=0, microsecond=0)
        try:
            return self._known[moment]
        except KeyError:
            pass
        try:
            found = self._walk.next(moment)
        except OverflowError:
            found = None
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        found = self._known[moment] = found if found is not None and found <= LAST else None
        return found

    def prev(self, at: datetime) -> datetime | None:
        """The last fire not later than `at`; None when the calendar begins after it, or as with `next`."""
        try:
            found = self._walk.prev(min(_utc("at", at), LAST))
        except OverflowError:
            return None
        return found if found is not None and found > FIRST else None

    def between(self, start: datetime, end: datetime, limit: int = 1000) -> Fires:
        """The fires in (start, end], oldest first, at most `limit` of them."""
        if limit < 1:
            raise CronError("limit", f"{describe(limit)} is not a whole number above 0")
        moment, end = _utc("start", start), _utc("end", end)
        fires: list[datetime] = []
        while (found := self.next(moment)) is not None and found <= end:
            if len(fires) == limit:
                return Fires(fires, cut=True)
            fires.append(found)
            moment = found
        return Fires(fires, cut=False)


def _walk(rule: Rule, walls: Walls, tz: ZoneInfo, dst: str) -> Walk:
    if dst == "literal" or (dst == "cron" and rule.is_hourly):
        return EveryReading(walls, tz)
    return FirstReached(walls, tz, make_up=dst == "cron")


def recurrence(
    *,
    expression: str = "",
    tz: str = "UTC",
    dst: str = "cron",
    every: timedelta | None = None,
    anchor: datetime | None = None,
    run_at: datetime | None = None,
) -> Recurrence:
    """The rule of whichever of `expression`, `every` (from `anchor`) and `run_at` is given; CronError unless it is
    exactly one."""
    given = [name for name, value in (("every", every), ("run_at", run_at)) if value is not None]
    if len(given) > 1 or (given and expression):
        raise CronError(given[0], "give one of expression, every and run_at")
    if not given and expression == "":
        raise CronError("expression", "required: an expression, an interval (every) or a moment (run_at)")
    if every is not None:
        return Interval(every, anchor or EPOCH)
    return Once(run_at) if run_at is not None else Cron(expression, tz=tz, dst=dst)


def _utc(name: str, moment: datetime) -> datetime:
    try:
        return utc(name, moment)
    except OverflowError:
        return FIRST if moment.year == 1 else LAST
