"""jobs.cron against a minute walk: every real minute is looked at, and nothing of jobs.cron is used to do it.

Expressions are drawn as text together with the sets they mean, so the grammar has a second opinion too.
"""

from __future__ import annotations

from bisect import bisect_right
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from jobs.cron import Cron

DAYS = 40
STEPS = 50
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = 1440
ZONES = [
    "UTC",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Santiago",
    "America/St_Johns",
    "America/Havana",
    "America/Caracas",
    "America/Nuuk",
    "America/Asuncion",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "Europe/Moscow",
    "Europe/Volgograd",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Africa/Juba",
    "Asia/Tehran",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Pyongyang",
    "Asia/Almaty",
    "Asia/Kathmandu",
    "Asia/Amman",
    "Antarctica/Troll",
    "Antarctica/Casey",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "Pacific/Kwajalein",
]
ALL_ZONES = sorted(
    key
    for key in available_timezones()
    if key not in ("localtime", "posixrules", "Factory") and key[:6] != "posix/"
)
YEARS = st.integers(1970, 2100)
COIN = st.booleans()


def minute_number(moment: datetime) -> int:
    return (moment - EPOCH) // MINUTE


def offset_at(zone: str, minute: int) -> int:
    """Minutes east of UTC."""
    shift = (EPOCH + minute * MINUTE).astimezone(ZoneInfo(zone)).utcoffset()
    assert shift is not None
    return shift // MINUTE


@lru_cache(maxsize=8192)
def offset(zone: str, hour: int) -> int:
    return offset_at(zone, hour * 60)


def readings(zone: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """(minute number, wall minute number) for each real minute."""
    for hour in range(first // 60, last // 60 + 1):
        before, after = offset(zone, hour), offset(zone, hour + 1)
        for minute in range(hour * 60, hour * 60 + 60):
            yield minute, minute + (before if before == after else offset_at(zone, minute))


@dataclass(frozen=True)
class Meaning:
    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int] | None
    last_day: bool
    months: frozenset[int]
    weekdays: frozenset[int] | None
    nth: frozenset[tuple[int, int]]

    def holds_on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        if self.days is None and self.weekdays is None:
            return True
        length, weekday = monthrange(day.year, day.month)[1], day.isoweekday() % 7
        by_day = self.days is not None and (day.day in self.days or (self.last_day and day.day == length))
        nth = {(weekday, (day.day + 6) // 7)} | ({(weekday, 0)} if day.day + 7 > length else set())
        by_weekday = self.weekdays is not None and (weekday in self.weekdays or bool(nth & self.nth))
        return by_day or by_weekday

    def fires(self, zone: str, first: int, last: int, dst: str) -> list[int]:
        """Minute numbers of all fires in (first, last]."""
        literal = dst == "literal" or (dst == "cron" and len(self.hours) == 24)
        minutes, dates = self.minutes, dict[int, bool]()

        def matches(wall: int) -> bool:
            if wall % 60 not in minutes or wall % DAY // 60 not in self.hours:
                return False
            number = wall // DAY
            if number not in dates:
                dates[number] = self.holds_on(date(1970, 1, 1) + timedelta(days=number))
            return dates[number]

        found, reached = [], -1
        for minute, wall in readings(zone, first - 2 * DAY, last):
            if literal or wall == reached + 1 or (dst == "skip" and wall > reached):
                hit = wall % 60 in minutes and matches(wall)
            else:
                hit = reached > 0 and any(matches(skipped) for skipped in range(reached + 1, wall + 1))
            if wall > reached:
                reached = wall
            if hit and first < minute <= last:
                found.append(minute)
        return found


def counted(start: int, end: int, step: int, low: int, high: int) -> set[int]:
    """Walk from `start` to `end`, over the end of the field if need be, taking every `step`-th."""
    taken, value, position = set(), start, 0
    while True:
        if position % step == 0:
            taken.add(value)
        if value == end:
            return taken
        value, position = (low if value == high else value + 1), position + 1


@st.composite
def items(draw: st.DrawFn, low: int, high: int) -> tuple[str, set[int]]:
    start, end = draw(st.integers(low, high)), draw(st.integers(low, high))
    step = draw(st.integers(1, high - low + 1))
    return draw(
        st.sampled_from(
            [
                (f"{start}", {start}),
                (f"{start}-{end}", counted(start, end, 1, low, high)),
                (f"{start}-{end}/{step}", counted(start, end, step, low, high)),
                (f"{start}/{step}", counted(start, high, step, low, high)),
                (f"*/{step}", counted(low, high, step, low, high)),
            ]
        )
    )


@st.composite
def lists(draw: st.DrawFn, low: int, high: int, often: tuple[str, ...] = ("*",)) -> tuple[str, set[int]]:
    """A field; half of the time one of `often`, a star or single values."""
    if draw(COIN):
        text = draw(st.sampled_from(often))
        return text, set(range(low, high + 1)) if text == "*" else {int(text)}
    parts = draw(st.lists(items(low, high), min_size=1, max_size=3))
    return ",".join(text for text, _ in parts), set().union(*(values for _, values in parts))


@st.composite
def meanings(draw: st.DrawFn, month: int, hour: int) -> Meaning:
    near = tuple(str((hour + ahead) % 24) for ahead in (-1, 0, 1, 2))
    minute_text, minutes = draw(lists(0, 59, ("*", "0", "30", "59")))
    hour_text, hours = draw(lists(0, 23, ("*", *near)))
    month_text, months = ("*", set(range(1, 13))) if draw(COIN) else (str(month), {month})
    days: set[int] | None = None
    day_text, last_day = "*", False
    if draw(COIN):
        day_text, days = draw(lists(1, 31, ("28", "29", "30")))
        longest = {month: 29 if month == 2 else monthrange(2001, month)[1] for month in months}
        last_day = min(days) > max(longest.values()) or draw(COIN)
        day_text = f"{day_text},L" if last_day else day_text
    weekdays: set[int] | None = None
    weekday_text, nth = "*", set[tuple[int, int]]()
    if draw(COIN):
        weekday_text, weekdays = draw(lists(0, 6, ("1", "5")))
        extra = draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5)), max_size=8))
        nth = set(extra)
        parts = [weekday_text, *(f"{day}#{k}" if k else f"{day}L" for day, k in extra)]
        if draw(COIN) and nth:
            parts, weekdays = parts[1:], set()
        weekday_text = ",".join(parts)
    return Meaning(
        text=f"{minute_text} {hour_text} {day_text} {month_text} {weekday_text}",
        minutes=frozenset(minutes),
        hours=frozenset(hours),
        days=None if days is None else frozenset(days),
        last_day=last_day,
        months=frozenset(months),
        weekdays=None if weekdays is None else frozenset(weekdays),
        nth=frozenset(nth),
    )


def is_by_minutes(zone: str, minute: int) -> bool:
    """Liberia was off by seconds until 1972: there the walk, by whole minutes, says nothing."""
    shift = (EPOCH + minute * MINUTE).astimezone(ZoneInfo(zone)).utcoffset()
    return minute > 3 * DAY and shift is not None and shift % MINUTE == timedelta()


@lru_cache(maxsize=4096)
def centres(zone: str, year: int) -> list[int]:
    """Minute numbers of this year's jumps of the clock, and of the end of February."""
    first = minute_number(datetime(year, 1, 1, tzinfo=UTC)) // 60
    jumps = []
    for day in range(365):
        hours = range(first + 24 * day, first + 24 * day + 24)
        if offset(zone, hours[0]) != offset(zone, hours[-1] + 1):
            jumps += [hour * 60 + 60 for hour in hours if offset(zone, hour) != offset(zone, hour + 1)]
    return [*jumps, minute_number(datetime(year, 3, 1, tzinfo=UTC))]


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Meaning, str, int, int, str]:
    """(meaning, zone, centre of the window, start, dst mode)."""
    zone = draw(st.one_of(st.sampled_from(ZONES), st.sampled_from(ALL_ZONES)))
    centre = draw(st.sampled_from(centres(zone, draw(YEARS))))
    assume(is_by_minutes(zone, centre - DAYS * DAY))
    local = (EPOCH + centre * MINUTE).astimezone(ZoneInfo(zone))
    meaning = draw(meanings(local.month, local.hour))
    near = st.integers(centre - 240, centre + 240)
    start = draw(st.one_of(near, st.integers(centre - 19 * DAY, centre + 15 * DAY)))
    return meaning, zone, centre, start, draw(st.sampled_from(["cron", "skip", "literal"]))


@settings(
    max_examples=200,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(scenes(), st.integers(0, 59))
def test_next_prev_and_between_agree_with_a_minute_walk(
    scene: tuple[Meaning, str, int, int, str], second: int
) -> None:
    meaning, zone, centre, start, dst = scene
    first, last = centre - DAYS // 2 * DAY, centre + DAYS // 2 * DAY
    truth = [EPOCH + minute * MINUTE for minute in meaning.fires(zone, first, last, dst)]
    cron = Cron(meaning.text, zone, dst)
    begin, end = EPOCH + first * MINUTE, EPOCH + last * MINUTE
    moment = EPOCH + start * MINUTE + timedelta(seconds=second)

    position = bisect_right(truth, moment)
    expected = truth[position : position + STEPS]
    assert cron.between(moment, end, STEPS) == (expected, len(truth) - position > STEPS)
    following = cron.next(moment)
    if expected:
        assert following == expected[0]
    else:
        assert following is None or following > end
    if following is not None:
        assert following > moment
        assert cron.prev(following) == following
        earlier = cron.prev(following - timedelta(microseconds=1))
        assert earlier is None or earlier <= moment

    walked: list[datetime] = []
    backwards = cron.prev(moment)
    while backwards is not None and backwards > begin and len(walked) < STEPS:
        walked.append(backwards)
        backwards = cron.prev(backwards - timedelta(microseconds=1))
    assert walked == truth[max(0, position - STEPS) : position][::-1]
