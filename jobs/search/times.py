"""Windows of time as people write them: today, -2d, 2026-12-01, 09:00, a..b; in the zone of who writes."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from jobs.search.terms import SearchError, Term
from jobs.search.window import MAX, Window

EXAMPLES = "today, tomorrow, last-24h, next-1h, -2d..now, 2026-12-01, 2026-12-01T09:00..2026-12-01T10:00"

UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"(last|next)-(\d{1,5})([smhdw])")
_OFFSET = re.compile(r"([+-])(\d{1,6})([smhdw])")
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_TIME = re.compile(r"(?:(\d{4}-\d\d-\d\d)[T_])?(\d\d):(\d\d)(?::(\d\d))?(Z?)")
_WORDS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_YEARS = range(2000, 2200)
_DAY_LONG = timedelta(days=1)


def window(term: Term, now: datetime) -> Window:
    """The window of a `due:` or `finished:` term: [start, end). SearchError for what is none, or longer than 31 days."""
    if len(term.values) > 1:
        raise SearchError(f"{term.name}: takes one window.", term.start, term.end, "As in -2d..now")
    (text,) = term.values
    first, dots, last = text.partition("..")
    if dots and not (first and last):
        raise SearchError(
            "A window has a beginning and an end.",
            term.start,
            term.end,
            f"As in {first or '-1d'}..{last or 'now'}",
        )
    begin = _part(first, now, term)
    end = _part(last, now, term) if dots else begin
    if not dots and begin.start == begin.end:
        raise SearchError(
            f"“{text}” is a moment, not a window.", term.start, term.end, f"As in {text}..now or now..{text}"
        )
    found = Window(begin.start.astimezone(UTC), end.end.astimezone(UTC))
    if found.start >= found.end:
        raise SearchError("This window ends before it begins.", term.start, term.end)
    if found.end - found.start > MAX:
        raise SearchError(f"A window has at most {MAX.days} days.", term.start, term.end, "As in -7d..now")
    return found


def _part(text: str, now: datetime, term: Term) -> Window:
    """A day as its whole, a moment as an empty window."""
    try:
        found = _read(text, now)
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise SearchError(f"“{text}” is no time.", term.start, term.end, f"As in {EXAMPLES}")
    if found.start.year not in _YEARS or found.end.year not in _YEARS:
        raise SearchError("There are no jobs so far away.", term.start, term.end)
    return found


def _read(text: str, now: datetime) -> Window | None:
    zone = timezone.get_current_timezone()
    here = now.astimezone(zone)
    if text == "now":
        return Window(now, now)
    if text in _WORDS:
        return _day(here.year, here.month, here.day, zone, _WORDS[text])
    if match := _SPAN.fullmatch(text):
        length = timedelta(**{UNITS[match[3]]: int(match[2])})
        return Window(now - length, now) if match[1] == "last" else Window(now, now + length)
    if match := _OFFSET.fullmatch(text):
        offset = timedelta(**{UNITS[match[3]]: int(match[2])})
        return _moment(now - offset if match[1] == "-" else now + offset)
    if match := _DAY.fullmatch(text):
        return _day(int(match[1]), int(match[2]), int(match[3]), zone, 0)
    if match := _TIME.fullmatch(text):
        date = match[1] or f"{here:%Y-%m-%d}"
        clock = f"{match[2]}:{match[3]}:{match[4] or '00'}"
        return _moment(datetime.fromisoformat(f"{date}T{clock}").replace(tzinfo=UTC if match[5] else zone))
    return None


def _moment(at: datetime) -> Window:
    return Window(at, at)


def _day(year: int, month: int, day: int, zone: object, later: int) -> Window:
    start = datetime(year, month, day) + later * _DAY_LONG  # noqa: DTZ001  # a wall time; the zone comes next
    return Window(start.replace(tzinfo=zone), (start + _DAY_LONG).replace(tzinfo=zone))  # type: ignore[arg-type]


def moment_text(moment: datetime) -> str:
    """A moment as it is written in a line, in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
