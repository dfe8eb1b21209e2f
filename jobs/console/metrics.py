"""Metrics: what the overview knows, as text for Prometheus. No tenant, payload or message is in it, and no more names of
queues and types than NAMES: a label is for ever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Q, Sum
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from jobs import clock, holds
from jobs.console import fleet, health
from jobs.console.remember import remembered
from jobs.histogram import BOUNDS, Histogram
from jobs.models import Backlog, Kind, Operation, Rollup, RollupProgress, Step
from jobs.models.operation import OVER
from jobs.scope import scope_of
from jobs.search.guard import TooSlow, bounded

PERMISSION = "jobs.view_metrics"
NAMES = 200
"""Of each kind; the others, the last of the alphabet, are one line."""
OTHERS = "(others)"
CONTENT = "text/plain; version=0.0.4; charset=utf-8"
_SUMS = ("due", "completed", "failed", "cancelled", "errors", "ran_seconds")


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """For `Authorization: Bearer <SCHEDULER_METRICS_TOKEN>`, or for a user with `jobs.view_metrics` who sees every tenant.
    503 when the database is too slow."""
    if not _may(request):
        return HttpResponse("Not for you.\n", CONTENT, 401, headers={"WWW-Authenticate": "Bearer"})
    try:
        with bounded("default"):
            return HttpResponse(text(), CONTENT)
    except TooSlow:
        return HttpResponse("The database is too slow.\n", CONTENT, 503)


@remembered(5)
def text(using: str = "default") -> str:
    now = clock.now(using)
    return "".join(str(each) for each in _families(now, using))


@dataclass
class Family:
    name: str
    kind: str
    told: str
    samples: list[tuple[str, dict[str, str], float]] = field(default_factory=list)
    """Each with what follows the name, its labels and its value."""

    def add(self, value: float | None, suffix: str = "", **labels: str) -> None:
        if value is not None:
            self.samples.append((suffix, labels, value))

    def __str__(self) -> str:
        name = f"punctual_{self.name}"
        lines = [f"# HELP {name} {self.told}", f"# TYPE {name} {self.kind}"]
        lines += [f"{name}{suffix}{_labels(labels)} {value:.10g}" for suffix, labels, value in self.samples]
        return "\n".join(lines) + "\n"


def _families(now: datetime, using: str) -> Iterator[Family]:
    progress = RollupProgress.objects.using(using).first()
    if progress:
        yield from _standings(now, using)
        yield from _totals(progress, using)
        yield from _times(progress, using)
    yield _one(
        "numbers_age_seconds",
        "How long ago the numbers above reach.",
        now - progress.first if progress else None,
    )
    yield from _processes()
    yield _one(
        "dispatch_lag_seconds",
        "How far dispatch is behind; 0: nothing waits for it.",
        fleet.dispatch_lag() or timedelta(),
    )
    yield _one(
        "days_ready", "Whole days ahead for which the tables have their partitions.", health.ready_days()
    )
    yield _one("holds", "Holds in force.", holds.standing(using).count())
    operations = Family("operations", "gauge", "Bulk operations that are not over.")
    found = Operation.objects.using(using).exclude(state__in=OVER).order_by()
    for state, count in found.values_list("state").annotate(Count("id")):
        operations.add(count, state=state)
    yield operations


def _standings(now: datetime, using: str) -> Iterator[Family]:
    """What is in the queues, as counted a few seconds ago."""
    columns = {
        "waiting": "Jobs whose time has come and that nobody has claimed.",
        "running": "Jobs that run.",
        "retrying": "Failed attempts that wait for their back-off to pass.",
        "later": "Jobs in the queues whose time has not come.",
        "parked": "Jobs set aside: no worker knows their type, or a hold or a concurrency key keeps them.",
    }
    rows: dict[str, dict[str, Any]] = {}
    for row in Backlog.objects.using(using).filter(kind=Kind.QUEUE).order_by("name"):
        label = _label(row.name, rows)
        known = rows.setdefault(label, dict.fromkeys(columns, 0) | {"oldest": None})
        for column in columns:
            known[column] += getattr(row, column)
        known["oldest"] = min(filter(None, [known["oldest"], row.oldest]), default=None)
    for column, told in columns.items():
        family = Family(f"jobs_{column}", "gauge", told)
        for name, values in rows.items():
            family.add(values[column], queue=name)
        yield family
    oldest = Family("jobs_oldest_seconds", "gauge", "How long the oldest waiting job has waited.")
    for name, values in rows.items():
        since = values["oldest"]
        oldest.add(0 if since is None else max((now - since).total_seconds(), 0), queue=name)
    yield oldest


def _totals(progress: RollupProgress, using: str) -> Iterator[Family]:
    """Counters that begin anew each day (UTC), as after a restart; then they only rise."""
    found = Rollup.objects.using(using).filter(_today(progress), kind__in=(Kind.QUEUE, Kind.TYPE))
    grouped: Any = found.values("kind", "name").annotate(**{f"sum_{each}": Sum(each) for each in _SUMS})
    of: dict[str, dict[str, dict[str, float]]] = {Kind.QUEUE: {}, Kind.TYPE: {}}
    for row in grouped.order_by("kind", "name"):
        known = of[row["kind"]]
        sums = known.setdefault(_label(row["name"], known), dict.fromkeys(_SUMS, 0.0))
        for each in _SUMS:
            sums[each] += row[f"sum_{each}"]
    for kind in (Kind.QUEUE, Kind.TYPE):
        due = Family(f"{kind}_due_total", "counter", f"Jobs that came due, by {kind}.")
        ended = Family(f"{kind}_ended_total", "counter", f"Jobs that ended, by {kind} and state.")
        errors = Family(f"{kind}_errors_total", "counter", f"Attempts that did not end well, by {kind}.")
        seconds = Family(
            f"{kind}_ran_seconds_total", "counter", f"Seconds that last attempts ran, by {kind}."
        )
        for name, sums in of[kind].items():
            label = {str(kind.value): name}
            due.add(sums["due"], **label)
            errors.add(sums["errors"], **label)
            seconds.add(sums["ran_seconds"], **label)
            for state in ("completed", "failed", "cancelled"):
                ended.add(sums[state], **label, state=state)
        yield from (due, ended, errors, seconds)


def _times(progress: RollupProgress, using: str) -> Iterator[Family]:
    """Of all jobs. The sum of lateness is not kept, so its histogram has none."""
    late, ran, seconds = Histogram(), Histogram(), 0.0
    for row in Rollup.objects.using(using).filter(_today(progress), kind=Kind.ALL):
        late, ran = late + Histogram(tuple(row.late)), ran + Histogram(tuple(row.ran))
        seconds += row.ran_seconds
    yield _histogram("late_seconds", "From due to the first start.", late, None)
    yield _histogram("ran_seconds", "How long last attempts ran.", ran, seconds)


def _today(progress: RollupProgress) -> Q:
    """The day of the last minute that is known: hours as far as they are summed up, then minutes."""
    last = (progress.first - timedelta(minutes=1)).astimezone(UTC)
    start = datetime.combine(last.date(), time.min, UTC)
    hour = max(progress.hour, start)
    return Q(step=Step.HOUR, at__gte=start, at__lt=hour) | Q(
        step=Step.MINUTE, at__gte=hour, at__lt=progress.first
    )


def _processes() -> Iterator[Family]:
    family = Family(
        "processes", "gauge", "Processes that live, and those lost without a word in the last day."
    )
    counts: dict[tuple[str, str], int] = {}
    for line in (*fleet.process_lines(fleet.WORKING), *fleet.process_lines(fleet.DISPATCHING)):
        if line.state != "ended":
            counts[line.kind, line.state] = counts.get((line.kind, line.state), 0) + 1
    for (kind, state), count in sorted(counts.items()):
        family.add(count, kind=kind, state=state)
    yield family


def _histogram(name: str, told: str, found: Histogram, seconds: float | None) -> Family:
    family, passed = Family(name, "histogram", told), 0
    for step, bound in enumerate(BOUNDS):
        passed += found.counts[step] if step < len(found.counts) else 0
        family.add(passed, "_bucket", le=f"{bound:g}")
    family.add(found.total, "_bucket", le="+Inf")
    family.add(seconds, "_sum")
    family.add(found.total, "_count")
    return family


def _one(name: str, told: str, value: float | timedelta | None) -> Family:
    family = Family(name, "gauge", told)
    family.add(value.total_seconds() if isinstance(value, timedelta) else value)
    return family


def _label(name: str, known: Iterable[str]) -> str:
    """Its name as long as there is room."""
    return name if len(list(known)) < NAMES else OTHERS


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _may(request: HttpRequest) -> bool:
    wanted = str(getattr(settings, "SCHEDULER_METRICS_TOKEN", "") or "")
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if wanted and scheme.lower() == "bearer" and constant_time_compare(token.strip(), wanted):
        return True
    user: Any = getattr(request, "user", None)
    return bool(user and user.is_active and user.has_perm(PERMISSION) and scope_of(user) is None)
