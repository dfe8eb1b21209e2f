"""Time zones: which names are good, and where the wall clock jumps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from jobs.errors import CronError, describe

_LOCAL = ("localtime", "posixrules")
_TICK = timedelta(seconds=1)


def zone(key: str) -> ZoneInfo:
    """The IANA zone of this name. CronError for anything that another machine could read differently."""
    if not isinstance(key, str):
        raise CronError("tz", f"must be the name of a time zone, not {type(key).__name__}")
    # right/ counts leap seconds, posix/ is missing from the tzdata package.
    if key in _LOCAL or key.startswith(("posix/", "right/")):
        raise CronError("tz", f"{describe(key)} differs between machines; use a name like Europe/Berlin")
    try:
        return ZoneInfo(key)
    except (KeyError, ValueError, OSError) as error:  # a directory or an endless name is an OSError
        raise CronError("tz", f"unknown time zone {describe(key)}") from error


class Shift(NamedTuple):
    """A jump of the wall clock at the instant `at` (UTC): offsets before and after it.

    Forward, the wall times from `jumps_from` until `jumps_to` are skipped. Back, those from `jumps_to` until
    `jumps_from` are shown twice.
    """

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def is_gap(self) -> bool:
        return self.after > self.before

    @property
    def jumps_from(self) -> datetime:
        return naive(self.at) + self.before

    @property
    def jumps_to(self) -> datetime:
        return naive(self.at) + self.after

    def covers(self, reading: datetime) -> bool:
        """Whether this wall time is one of those skipped or shown twice."""
        low, high = sorted((self.jumps_from, self.jumps_to))
        return low <= reading < high


def naive(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


def wall(moment: datetime, tz: ZoneInfo) -> datetime:
    """What the clock of `tz` shows at `moment`, without the zone; `fold` is 1 in the second pass of an hour."""
    return naive(moment.astimezone(tz))


def instant(reading: datetime, tz: ZoneInfo, *, fold: int = 0) -> datetime:
    """When the clock shows `reading` (which it does): the first time, or with `fold=1` the last time. UTC."""
    return reading.replace(tzinfo=tz, fold=fold).astimezone(UTC)


def reached_at(reading: datetime, tz: ZoneInfo) -> datetime:
    """When the clock first shows `reading` or, where a gap skips it, passes it. UTC."""
    shift = shift_around(reading, tz)
    return shift.at if shift is not None and shift.is_gap else instant(reading, tz)


def shift_around(reading: datetime, tz: ZoneInfo) -> Shift | None:
    """The jump that skips or repeats this wall time; None for the ordinary ones, shown once."""
    before, after = (reading.replace(tzinfo=tz, fold=fold).utcoffset() or timedelta(0) for fold in (0, 1))
    if before == after:
        return None
    moment = reading.replace(tzinfo=UTC, fold=0, microsecond=0)
    return _bisect(tz, moment - max(before, after), moment - min(before, after))


def shifts_between(start: datetime, end: datetime, tz: ZoneInfo) -> list[Shift]:
    """The jumps in (start, end], found by looking once a day."""
    found, day = [], timedelta(days=1)
    start = start.replace(microsecond=0)
    while start < end:
        until = min(start + day, end)
        if _offset(start, tz) != _offset(until, tz):
            found.append(_bisect(tz, start, until))
        start = until
    return found


def _offset(moment: datetime, tz: ZoneInfo) -> timedelta:
    return moment.astimezone(tz).utcoffset() or timedelta(0)


def _bisect(tz: ZoneInfo, low: datetime, high: datetime) -> Shift:
    """The one change of offset in (low, high]. Zone data are in whole seconds."""
    before = _offset(low, tz)
    while high - low > _TICK:
        middle = low + ((high - low) // _TICK // 2) * _TICK
        if _offset(middle, tz) == before:
            low = middle
        else:
            high = middle
    return Shift(high, before, _offset(high, tz))
