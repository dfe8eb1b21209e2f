"""The numbers behind the console's charts: right for every minute, however often they are counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from dispatch.rollup import AGAIN, Rollups
from jobs import counting, rollups, verbs
from jobs.clock import DatabaseClock
from jobs.histogram import Histogram
from jobs.models import Job, Kind, Outcome, Rollup, RollupProgress, Step
from jobs.states import JobState
from tests.db.verbs import job_so
from tests.factories import Connection, schedule
from tests.statements import Noting

pytestmark = pytest.mark.django_db
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
COUNTS = ("due", "completed", "failed", "cancelled", "errors")


def pass_at(here: Connection, now: datetime) -> Rollups:
    work = Rollups()
    work.run_once(here, now)
    return work


def started(here: Connection) -> datetime:
    """The loop's first pass was a minute ago; returns the beginning of this minute."""
    now = DatabaseClock().read(here)
    pass_at(here, now - MINUTE)
    return rollups.floor(now, 60)


def counted(kind: Kind, name: str, since: datetime, until: datetime) -> tuple[int, ...]:
    point = rollups.series(kind, name, since, until).total
    return tuple(getattr(point, column) for column in COUNTS)


def ended(here: Connection, at: datetime, state: JobState, **options: Any) -> Job:
    """A job that ended at `at`, however the clock stands."""
    job = job_so(state.value, here, **options)
    here.execute(
        "UPDATE jobs_outcome SET finished_at = %s, started_at = %s WHERE job_id = %s",
        [at, at - MINUTE / 2, job.id],
    )
    here.execute("UPDATE jobs_attempt SET finished_at = %s WHERE job_id = %s", [at, job.id])
    return job


def test_a_minute_is_counted_by_queue_type_and_tenant(here: Connection) -> None:
    minute = started(here)
    for tenant, queue, state in [
        ("acme", "mail", JobState.COMPLETED),
        ("acme", "mail", JobState.FAILED),
        ("beta", "mail", JobState.COMPLETED),
        ("beta", "slow", JobState.CANCELLED),
    ]:
        ended(here, minute + MINUTE / 3, state, tenant=tenant, queue=queue)
    pass_at(here, minute + 2 * MINUTE)
    span = (minute, minute + MINUTE)
    due = Job.objects.due_between(*span).count()
    assert counted(Kind.ALL, "", *span) == (due, 2, 1, 1, 1)
    assert counted(Kind.QUEUE, "mail", *span)[1:] == (2, 1, 0, 1)
    assert counted(Kind.TENANT, "acme", *span)[1:] == (1, 1, 0, 1)
    assert counted(Kind.TENANT, "beta", *span)[1:] == (1, 0, 1, 0)
    assert counted(Kind.TYPE, "test.noop", *span)[1:] == (2, 1, 1, 1)
    assert rollups.series(Kind.ALL, "", *span).total.ran.percentile(50) == pytest.approx(
        timedelta(seconds=30), abs=timedelta(seconds=15)
    )


def test_jobs_of_any_due_day_are_found_by_their_end(here: Connection) -> None:
    minute = started(here)
    old = schedule(due_at=minute - timedelta(days=1))
    far = schedule(due_at=minute + timedelta(days=4))
    verbs.cancel([old.id, far.id])
    Outcome.objects.filter(job_id__in=[old.id, far.id]).update(finished_at=minute)
    pass_at(here, minute + 2 * MINUTE)
    assert counted(Kind.ALL, "", minute, minute + MINUTE)[3] == 2


def test_lateness_is_that_of_first_attempts_from_when_a_job_could_start(here: Connection) -> None:
    minute = started(here)
    late = ended(here, minute, JobState.COMPLETED)
    failed = ended(here, minute, JobState.FAILED)
    again = ended(here, minute, JobState.COMPLETED)
    moved = ended(here, minute, JobState.COMPLETED)
    for job, values in [(late, {}), (failed, {}), (again, {"attempt": 2}), (moved, {"action_id": 7})]:
        start = max(job.due_at, job.created_at) + timedelta(seconds=4)
        Outcome.objects.filter(job_id=job.id).update(started_at=start, **values)
        here.execute("UPDATE jobs_attempt SET started_at = %s WHERE job_id = %s", [start, job.id])
    pass_at(here, minute + 2 * MINUTE)
    point = rollups.series(Kind.ALL, "", minute, minute + MINUTE).total
    assert point.late == Histogram.of([4.0, 4.0])
    assert point.late.share_within(timedelta(seconds=3)) == 0
    assert point.late.share_within(timedelta(seconds=5)) == 1


def test_counting_a_minute_again_changes_nothing(here: Connection) -> None:
    minute = started(here)
    ended(here, minute, JobState.COMPLETED)
    ended(here, minute, JobState.FAILED)
    pass_at(here, minute + 2 * MINUTE)
    before = list(Rollup.objects.order_by("kind", "name", "at").values())
    counting.count_minutes(here, minute - MINUTE, minute + MINUTE)
    assert list(Rollup.objects.order_by("kind", "name", "at").values()) == before


def test_what_is_committed_late_is_found_by_the_second_look(here: Connection) -> None:
    minute = started(here)
    ended(here, minute, JobState.COMPLETED)
    pass_at(here, minute + 2 * MINUTE)
    ended(here, minute + MINUTE / 2, JobState.COMPLETED, queue="late")
    pass_at(here, minute + 3 * MINUTE)
    assert counted(Kind.QUEUE, "late", minute, minute + MINUTE)[1] == 0
    for _ in range(2):
        pass_at(here, minute + AGAIN + 2 * MINUTE)
    assert counted(Kind.QUEUE, "late", minute, minute + MINUTE)[1] == 1
    assert counted(Kind.ALL, "", minute, minute + MINUTE)[1] == 2


def test_a_retry_does_not_unmake_that_a_job_failed(here: Connection) -> None:
    minute = started(here)
    job = ended(here, minute, JobState.FAILED)
    pass_at(here, minute + 2 * MINUTE)
    verbs.retry([job.id])
    ended(here, minute, JobState.COMPLETED, queue="other")
    for _ in range(2):
        pass_at(here, minute + AGAIN + 2 * MINUTE)
    assert counted(Kind.ALL, "", minute, minute + MINUTE)[1:] == (1, 1, 0, 1)


def test_a_pass_that_has_nothing_to_do_looks_once_and_locks_nothing(here: Connection) -> None:
    """Of twenty dispatchers nineteen find that another has just counted."""
    now = DatabaseClock().read(here)
    pass_at(here, now)
    noting = Noting(here)
    assert Rollups().run_once(cast(Connection, noting), now) == 0
    assert len(noting.sent) == 1
    assert "FOR UPDATE" not in noting.sent[0]


def test_an_outage_is_caught_up_with_in_bounded_steps(here: Connection) -> None:
    minute = started(here)
    ended(here, minute, JobState.COMPLETED)
    ended(here, minute + 25 * MINUTE, JobState.COMPLETED, queue="later")
    work, passes = Rollups(), 1
    while work.run_once(here, minute + HOUR) >= work.batch:
        passes += 1
    assert 5 <= passes <= 8
    assert counted(Kind.ALL, "", minute, minute + HOUR)[1] == 2
    assert rollups.progress().reached == minute + HOUR - MINUTE  # type: ignore[union-attr]


def test_an_hour_is_the_sum_of_its_minutes_and_old_minutes_go(here: Connection) -> None:
    hour = rollups.floor(DatabaseClock().read(here), 3600)
    pass_at(here, hour)
    for n in range(3):
        ended(here, hour + n * MINUTE, JobState.COMPLETED, queue="mail")
    work = Rollups()
    for _ in range(20):
        work.run_once(here, hour + 2 * HOUR)
    span = (hour, hour + HOUR)
    minutes = rollups.series(Kind.QUEUE, "mail", *span).total
    hours = rollups.series(Kind.QUEUE, "mail", *span, Step.HOUR)
    assert len(hours.points) == 1
    assert (hours.total.completed, hours.total.ran) == (3, minutes.ran)
    assert hours.total.ran_seconds == pytest.approx(minutes.ran_seconds)
    RollupProgress.objects.update(first=hour + timedelta(days=3), second=hour + timedelta(days=3))
    pass_at(here, hour + timedelta(days=3, minutes=2))
    assert not Rollup.objects.filter(step=Step.MINUTE, at__lt=hour + HOUR).exists()
    assert Rollup.objects.filter(step=Step.HOUR, at=hour).exists()


def test_minutes_stay_until_their_hour_is_summed(here: Connection) -> None:
    minute = started(here)
    ended(here, minute, JobState.COMPLETED)
    pass_at(here, minute + 2 * MINUTE)
    RollupProgress.objects.update(first=minute + timedelta(days=3))
    pass_at(here, minute + timedelta(days=3, minutes=2))
    assert Rollup.objects.filter(step=Step.MINUTE, at=minute).exists()


def test_the_backlog_is_what_is_in_the_queues(here: Connection) -> None:
    for situation in ("queued", "running", "retryable", "snoozed"):
        job_so(situation, here, tenant=f"t-{situation}")
    here.execute("UPDATE jobs_queueentry SET run_at = run_at - interval '1 min' WHERE queue = 'queued'")
    pass_at(here, DatabaseClock().read(here))
    everything = rollups.backlog(Kind.ALL)[""]
    values = (
        everything.waiting,
        everything.running,
        everything.retrying,
        everything.later,
        everything.parked,
    )
    assert values == (1, 1, 1, 1, 0)
    assert everything.oldest is not None
    assert set(rollups.backlog(Kind.TENANT)) == {"t-queued", "t-running", "t-retryable", "t-snoozed"}
    here.execute("DELETE FROM jobs_queueentry")
    pass_at(here, DatabaseClock().read(here) + MINUTE)
    assert rollups.backlog(Kind.TENANT) == {}
    assert rollups.backlog(Kind.ALL)[""].waiting == 0


def test_the_forecast_is_what_comes_due_in_the_next_hour(here: Connection) -> None:
    now = DatabaseClock().read(here)
    for minutes in (5, 5, 50, 90):
        schedule(due_at=now + minutes * MINUTE, queue="mail")
    pass_at(here, now)
    found = rollups.forecast(Kind.QUEUE)
    assert [count for _, count in found["mail"]] == [2, 1]
    assert found["mail"][0][0] == rollups.floor(now + 5 * MINUTE, 60)
    assert rollups.progress().foreseen == now  # type: ignore[union-attr]
    ahead = rollups.outlook(now - HOUR, now)
    assert (dict(ahead.due), ahead.as_of) == (dict(found["mail"]), now)


def test_what_can_be_managed_is_told_by_the_minutes_in_which_jobs_waited(here: Connection) -> None:
    minute = started(here)
    assert rollups.outlook(minute - HOUR, minute).capacity is None
    for n, (seconds, jobs) in enumerate([(0.1, 500), (30.0, 120), (60.0, 90)]):
        late = list(Histogram.of([seconds] * jobs).counts)
        Rollup.objects.create(
            kind="all", step=60, at=minute - (n + 2) * MINUTE, completed=jobs - 1, failed=1, late=late
        )
    assert rollups.outlook(minute - HOUR, minute).capacity == 120
    assert rollups.outlook(minute - HOUR, minute, slugs=["acme"]).capacity is None
    assert rollups.outlook(minute - 2 * HOUR, minute - HOUR).capacity is None


def test_within_a_scope_all_is_the_sum_of_its_tenants(here: Connection) -> None:
    minute = started(here)
    for tenant in ("acme", "beta", "gamma"):
        ended(here, minute, JobState.COMPLETED, tenant=tenant)
    pass_at(here, minute + 2 * MINUTE)
    span = (minute, minute + MINUTE)
    assert rollups.series(Kind.ALL, "", *span, slugs=["acme", "beta"]).total.completed == 2
    assert set(rollups.totals(Kind.TENANT, *span, slugs=["acme"])) == {"acme"}
    assert rollups.totals(Kind.TENANT, *span, names=["beta"], slugs=["acme"]) == {}
    assert rollups.totals(Kind.QUEUE, *span, slugs=["acme"]) == {}
    assert rollups.totals(Kind.ALL, *span)[""].completed == 3


def test_without_the_loop_the_numbers_are_told_to_be_old(here: Connection) -> None:
    now = datetime.now(UTC)
    assert rollups.progress() is None
    assert rollups.is_old(None, now)
    assert not rollups.is_old(now - MINUTE, now)
    series = rollups.series(Kind.ALL, "", now - HOUR, now)
    assert series.as_of is None
    assert len(series.points) == 61
