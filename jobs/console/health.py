"""Health: the days and what will become of them, the server, and the settings in force."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from typing import Any, cast

import django
import psycopg
from django.db import DatabaseError, Error, connections, transaction
from django.http import HttpRequest

from jobs import clock
from jobs.conf import conf
from jobs.console import show
from jobs.console.amounts import about, lasting, size
from jobs.console.reading import rows
from jobs.console.remember import remembered
from jobs.cron import tzdata
from jobs.errors import SchedulerError
from jobs.partitions import Plan, Step, bounds, plan, read_days, ready
from jobs.sql import load

READY = 3
"""Fewer complete days ahead than this is a warning; none is an alarm."""
OLD = timedelta(minutes=5)
"""A transaction older than this holds up vacuum."""
PREVIEW = 7


@dataclass(frozen=True)
class Check:
    """One thing looked at: "ok", "warning", "alarm", or "unknown" where it could not be read."""

    state: str
    name: str
    told: str
    advice: str = ""


@dataclass(frozen=True)
class DayLine:
    day: date
    rows: int
    """Of all its tables, as the planner knows them."""
    jobs: int
    bytes: int
    step: Step | None
    when: str

    @property
    def told(self) -> str:
        if self.step is None:
            return ""
        return {"make": "will be made", "drop": "will be dropped", "keep": "kept"}[self.step.action]


@dataclass(frozen=True)
class Expiry:
    day: date
    goes_at: datetime
    line: DayLine | None


def gather(request: HttpRequest) -> dict[str, Any]:
    now = clock.now()
    server, trouble = _server()
    planned, problem = _plan()
    lines = day_lines(now, planned)
    return {
        "checks": [*_days_checks(planned, problem), *_server_checks(server, trouble)],
        "lines": lines,
        "expiries": _expiries(now, lines),
        "plan": planned,
        "server": server,
        "settings": _settings(),
        "versions": _versions(server),
        "total_bytes": sum(line.bytes for line in lines),
        "total_jobs": sum(line.jobs for line in lines),
    }


@remembered(30)
def ready_days(using: str = "default") -> int | None:
    """Complete days from today on; None: that could not be read. One statement."""
    now = clock.now(using)
    try:
        with transaction.atomic(using), connections[using].cursor() as cursor:
            return ready(read_days(cast(Any, cursor)), now)
    except DatabaseError:
        return None


@remembered(30)
def _plan(using: str = "default") -> tuple[Plan | None, str]:
    """What `managepartitions` would do now, and why."""
    try:
        with transaction.atomic(using):
            return plan(clock.now(using), using), ""
    except (Error, psycopg.Error, SchedulerError, OSError) as error:
        return None, show.clean(str(error).strip() or type(error).__name__)


@remembered(10)
def _server(using: str = "default") -> tuple[dict[str, Any], str]:
    try:
        with transaction.atomic(using):  # what is given up here leaves the rest of the page readable
            ((found,),) = rows(load("console/server"), None, using)
    except DatabaseError as error:
        return {}, show.clean(str(error).strip())
    return {**found, "now": datetime.fromisoformat(found["now"])}, ""


@remembered(10)
def _leaves(using: str = "default") -> list[Any]:
    return rows(load("console/leaves"), None, using)


def day_lines(now: datetime, planned: Plan | None) -> list[DayLine]:
    """The days that exist and those that the plan speaks of, oldest first."""
    steps = {step.day: step for step in planned.steps} if planned else {}
    sizes = {date(*map(int, name.split("_"))): values for name, *values in _leaves()}
    lines = []
    for day in sorted(set(steps) | set(sizes)):
        count, total, jobs = sizes.get(day, (0, 0, 0))
        start, end = bounds(day)
        when = "past" if end <= now else "today" if start <= now else "ahead"
        lines.append(DayLine(day, count, jobs, total, steps.get(day), when))
    return lines


def _expiries(now: datetime, lines: Sequence[DayLine]) -> list[Expiry]:
    """When the next days go. None goes while a job of it has not ended."""
    known = {line.day: line for line in lines}
    past = sorted(day for day, line in known.items() if line.when != "ahead")
    found = [Expiry(day, bounds(day)[1] + conf().retention, known[day]) for day in past]
    return [each for each in found if each.goes_at > now][:PREVIEW]


def _days_checks(planned: Plan | None, problem: str) -> list[Check]:
    if planned is None:
        return [Check("unknown", "Days", f"The catalog could not be read: {problem}")]
    ready = planned.ready
    state = "ok" if ready >= READY else "warning" if ready else "alarm"
    advice = "" if state == "ok" else "Run `manage.py managepartitions ensure`, or keep a dispatcher running."
    checks = [Check(state, "Days ahead", f"{ready} days are ready, from today on.", advice)]
    kept = [step for step in planned.steps if step.action == "keep"]
    if kept:
        told = f"{len(kept)} days past the retention cannot be dropped: {kept[0].day}: {kept[0].reason}"
        checks.append(Check("warning", "Retention", told, "End or cancel the jobs that hold them."))
    else:
        checks.append(Check("ok", "Retention", f"Jobs are kept {conf().retention.days} days."))
    return checks


def _server_checks(server: dict[str, Any], trouble: str) -> list[Check]:
    if not server:
        return [Check("unknown", "Server", f"It could not be asked: {trouble}")]
    checks = (_durability, _transactions, _wraparound, _connections, _vacuum)
    return [each(server) for each in checks]


def _durability(server: dict[str, Any]) -> Check:
    if server["fsync"] == "on":
        return Check(
            "ok", "Durability", f"fsync is on, synchronous_commit is {server['synchronous_commit']}."
        )
    return Check(
        "alarm", "Durability", "fsync is off: a crash of the machine loses jobs.", "Switch fsync on."
    )


def _transactions(server: dict[str, Any]) -> Check:
    old = [each for each in server["long"] if each["seconds"] > OLD.total_seconds()]
    if not old:
        return Check("ok", "Long transactions", "None is older than 5 minutes.")
    worst = old[0]
    told = f"The oldest, pid {worst['pid']}, is open for {lasting(worst['seconds'])}."
    return Check("warning", "Long transactions", told, "It keeps vacuum from cleaning the queue.")


def _wraparound(server: dict[str, Any]) -> Check:
    share = server["age"] / 2_000_000_000
    told = f"The oldest transaction id is {about(server['age'])[2:]} transactions old."
    if share < 0.4:
        return Check("ok", "Wraparound", told)
    return Check("alarm" if share > 0.75 else "warning", "Wraparound", told, "Let vacuum freeze old tables.")


def _connections(server: dict[str, Any]) -> Check:
    used, most = server["connections"], server["max_connections"]
    state = "ok" if used < 0.8 * most else "warning"
    return Check(
        state, "Connections", f"{used} of {most} are in use.", "" if state == "ok" else "Use a pooler."
    )


def _vacuum(server: dict[str, Any]) -> Check:
    dead = server["entries_dead"] or 0
    if server["autovacuum"] != "on":
        return Check("alarm", "Vacuum", "autovacuum is off.", "Switch it on: the queue needs it.")
    state = "ok" if dead < 1_000_000 else "warning"
    return Check(state, "Vacuum", f"The queue has {about(dead)[2:]} dead rows.")


def _versions(server: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("django-punctual", _version("django-punctual")),
        ("Django", django.get_version()),
        ("Python", sys.version.split()[0]),
        ("PostgreSQL", server.get("version", "unknown")),
        ("psycopg", psycopg.__version__),
        ("Time zone data", tzdata.version() or "unknown"),
        ("Database", size(server["size"]) if "size" in server else "unknown"),
    ]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _settings() -> list[tuple[str, str, bool]]:
    """Name, value and whether it differs from the default."""
    found = []
    for each in fields(conf()):
        value = getattr(conf(), each.name)
        found.append((each.name, show.clean(_told(value)), value != each.default))
    return found


def _told(value: Any) -> str:
    if isinstance(value, timedelta):
        return lasting(value)
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
