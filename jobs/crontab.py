"""A crontab file as Debian's cron and cronie read it -> entries, and entries -> a file. Pure.

Known: comments, environment lines, CRON_TZ, RANDOM_DELAY, aliases, `%` as end of line and `\\%` as itself, the column of
users in a system crontab. What cannot be taken over is a Problem with its line, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from jobs.cron import Cron
from jobs.errors import CronError

_VARIABLE = re.compile(r"""\s*(["']?)([A-Za-z_][A-Za-z0-9_]*)\1\s*=\s*(.*?)\s*""")
_USER = re.compile(r"[a-z_][a-z0-9_.-]*\$?")
ZONE, DELAY = "CRON_TZ", "RANDOM_DELAY"
UNUSED = {"MAILTO": "output is kept in the job's result", "MAILFROM": "output is kept in the job's result"}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line that fires. `zone`: empty when the file names none."""

    line: int
    expression: str
    command: str
    stdin: str = ""
    user: str = ""
    zone: str = ""
    jitter: timedelta = timedelta()
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Problem:
    line: int
    text: str
    reason: str


@dataclass
class Crontab:
    entries: list[Entry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read(text: str, *, users: bool) -> Crontab:
    """`users`: it has a column of users, as /etc/crontab and the files of /etc/cron.d."""
    found, environment = Crontab(), dict[str, str]()
    for number, line in enumerate(text.splitlines(), 1):
        try:
            _read_line(number, line, environment, found, users=users)
        except CronError as error:
            found.problems.append(Problem(number, line.strip(), str(error)))
    return found


def write(entries: Iterable[Entry], *, users: bool) -> str:
    """A file that `read` gives these entries back from: an environment line wherever a variable changes."""
    lines, current = list[str](), dict[str, str]()
    for entry in entries:
        wanted = dict(entry.environment)
        if entry.zone or ZONE in current:
            wanted[ZONE] = entry.zone
        if entry.jitter or DELAY in current:
            wanted[DELAY] = str(entry.jitter // timedelta(minutes=1))
        for name in sorted(set(wanted) | set(current)):
            value = wanted.get(name, "")
            if current.get(name) != value:
                lines.append(f"{name}={_quoted(value)}")
                current[name] = value
        lines.append(_line(entry, users=users))
    return "".join(f"{line}\n" for line in lines)


def _read_line(number: int, line: str, environment: dict[str, str], found: Crontab, *, users: bool) -> None:
    text = line.strip()
    if not text or text.startswith("#"):
        return
    if variable := _VARIABLE.fullmatch(line):
        _set(variable[2], _unquoted(variable[3]), number, environment, found)
        return
    if text.startswith("-"):
        found.notes.append(f"line {number}: the leading - (do not log) is dropped")
        text = text[1:].lstrip()
    found.entries.append(_entry(number, text, environment, users=users))


def _set(name: str, value: str, number: int, environment: dict[str, str], found: Crontab) -> None:
    if name in UNUSED:
        found.notes.append(f"line {number}: {name} is not used: {UNUSED[name]}")
    elif value or name in environment or name not in (ZONE, DELAY):
        environment[name] = value


def _entry(number: int, text: str, environment: dict[str, str], *, users: bool) -> Entry:
    expression, rest = _schedule(text)
    if expression.lower() == "@reboot":
        raise CronError("expression", "@reboot has no time: start such a program as a service of the system")
    user = ""
    if users:
        user, rest = (*rest.split(None, 1), "", "")[:2]
        if not _USER.fullmatch(user):
            raise CronError(
                "user", f"{user!r} is no name of a user; a crontab of one user is read with --user"
            )
    command, stdin = _percent(rest.strip())
    if not command:
        raise CronError("command", "there is none")
    zone = environment.get(ZONE, "")
    _same_days(expression)
    Cron(expression, tz=zone or "UTC")
    return Entry(
        line=number,
        expression=expression,
        command=command,
        stdin=stdin,
        user=user,
        zone=zone,
        jitter=_delay(environment.get(DELAY, "")),
        environment={name: value for name, value in environment.items() if name not in (ZONE, DELAY)},
    )


def _schedule(text: str) -> tuple[str, str]:
    parts = re.split(r"[ \t]+", text, maxsplit=1 if text.startswith("@") else 5)
    size = 1 if text.startswith("@") else 5
    if len(parts) <= size:
        raise CronError("expression", f"needs {size} fields and a command")
    return " ".join(parts[:size]), parts[size]


def _same_days(expression: str) -> None:
    """cron(8) takes a day field that begins with * for unrestricted: `*/2` and Monday must both match. Here either
    would do, so such a line is not taken over by guess."""
    _, _, day, _, weekday = expression.split() if " " in expression else ("", "", "*", "", "*")
    for name, one, other in (("day of month", day, weekday), ("day of week", weekday, day)):
        if one.startswith("*") and one != "*" and other != "*":
            raise CronError(
                name,
                f"{one} with the other day field set: cron runs it when both match, here it would run when either does",
            )


def _delay(text: str) -> timedelta:
    if text and not text.isdecimal():
        raise CronError(DELAY, f"{text!r} is no number of minutes")
    return timedelta(minutes=int(text or 0))


def _percent(text: str) -> tuple[str, str]:
    """The command and what it reads: an unescaped % ends a line, the first one the command."""
    parts = [part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", text)]
    return parts[0].strip(), "".join(f"{part}\n" for part in parts[1:])


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _quoted(value: str) -> str:
    if value and value == value.strip() and value[0] not in "\"'":
        return value
    quote = "'" if '"' in value else '"'
    return f"{quote}{value}{quote}"


def _line(entry: Entry, *, users: bool) -> str:
    lines = [entry.command, *entry.stdin.splitlines()]
    command = "%".join(line.replace("%", "\\%") for line in lines)
    return " ".join([entry.expression, *([entry.user or "root"] if users else []), command])


def unwritable(expression: str) -> Iterator[str]:
    """What of an expression other crons do not know."""
    *_, day, _month, weekday = expression.split() if " " in expression else ("*", "*", "*")
    if "L" in day.upper():
        yield "L, the last day of the month"
    if "#" in weekday or "L" in weekday.upper():
        yield "a weekday of the month (# or L)"
