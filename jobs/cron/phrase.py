"""A rule in words, for people who do not read cron. Says less rather than something wrong: the next fires say the rest."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.cron.rule import Rule

_DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_ORDINALS = ("last", "first", "second", "third", "fourth", "fifth")
MOST_TIMES = 6
"""Times of day that are written out."""


def phrase(rule: Rule) -> str:
    """Such as "at 02:30 on Monday and Friday in May"."""
    return " ".join(filter(None, (_clock(rule), _days(rule), _months(rule))))


def _clock(rule: Rule) -> str:
    if not rule.is_hourly and len(rule.minutes) * len(rule.hours) <= MOST_TIMES:
        times = (f"{hour:02}:{minute:02}" for hour in sorted(rule.hours) for minute in sorted(rule.minutes))
        return f"at {_list(times)}"
    return " ".join(filter(None, (_minutes(rule), _hours(rule))))


def _minutes(rule: Rule) -> str:
    if len(rule.minutes) == 60:
        return "every minute"
    if step := _step(rule.minutes, 60):
        return f"every {step} minutes"
    if rule.minutes == {0}:
        return "every hour, on the hour" if rule.is_hourly else "on the hour"
    return f"at minute {_list(map(str, sorted(rule.minutes)))}" + (" of every hour" * rule.is_hourly)


def _hours(rule: Rule) -> str:
    if rule.is_hourly:
        return ""
    hours = sorted(rule.hours)
    if len(hours) > 2 and hours == list(range(hours[0], hours[-1] + 1)):
        return f"of the hours {hours[0]:02} to {hours[-1]:02}"
    return f"of the hour{'s' * (len(hours) > 1)} {_list(f'{hour:02}' for hour in hours)}"


def _days(rule: Rule) -> str:
    if rule.every_day or not (rule.by_day or rule.by_weekday):
        return "every day" if not rule.is_hourly else ""
    parts = []
    if rule.by_day:
        if rule.days:
            parts.append(f"day {_list(map(str, sorted(rule.days)))} of the month")
        if rule.last_day:
            parts.append("the last day of the month")
    if rule.by_weekday:
        names = [_DAYS[day] for day in sorted(rule.weekdays, key=lambda day: day or 7)]
        names += [f"the {_ORDINALS[k]} {_DAYS[day]} of the month" for day, k in sorted(rule.nth_weekdays)]
        if names:
            parts.append(_list(names))
    return "on " + " or on ".join(parts)


def _months(rule: Rule) -> str:
    return (
        "" if len(rule.months) == 12 else f"in {_list(_MONTHS[month - 1] for month in sorted(rule.months))}"
    )


def _step(values: frozenset[int], size: int) -> int:
    """The step of `*/n` where n divides the field; 0 for other sets."""
    numbers = sorted(values)
    step = size // len(numbers)
    return step if step > 1 and numbers == list(range(0, size, step)) and len(numbers) > 1 else 0


def _list(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
