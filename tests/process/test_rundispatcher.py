"""Dispatchers as processes: side by side, killed, told to end; due jobs reach the workers in time and in order."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connections

from dispatch.management.commands.rundispatcher import STUCK
from jobs import clock
from jobs.models import Job, Process, QueueEntry, Timer
from jobs.newjob import NewJob
from jobs.states import JobState
from tests.commands import ROOT, Commands, Ledger
from tests.factories import process, schedule, take
from tests.racing import Connection, assert_sound, due_job
from tests.waiting import wait_until

pytestmark = pytest.mark.process
AHEAD = timedelta(seconds=5)
"""The look-ahead: what is due later has a timer."""
IMPATIENT = """
import django
django.setup()
from django.core.management import call_command
from dispatch.management.commands import rundispatcher
rundispatcher.STUCK_SECONDS = 1.0
call_command("rundispatcher", "--only", "tick")
"""


def come_due(jobs: int) -> set[UUID]:
    """So many timers whose time is now: as if their dispatchers had been away meanwhile."""
    later = clock.now() + 2 * AHEAD
    ids = {
        job_id for job_id, _ in Job.objects.schedule_many([NewJob(job_type="test.noop", due_at=later)] * jobs)
    }
    wait_until(lambda: later - AHEAD < clock.now())
    return ids


def test_a_dispatcher_that_is_killed_in_the_middle_of_five_thousand_jobs_leaves_none_behind(
    commands: Commands,
) -> None:
    few = {"SCHEDULER_DISPATCH_BATCH": "20"}  # so that there is a middle
    first = commands.dispatcher("--only", "dispatch", **few)
    ids = come_due(5000)
    wait_until(QueueEntry.objects.exists)
    first.send(signal.SIGKILL)
    first.wait()
    assert Timer.objects.filter(due_at__gt=clock.now() - AHEAD).exists(), "it was killed too late"
    for _ in range(2):
        commands.dispatcher("--only", "dispatch", **few)
    wait_until(lambda: QueueEntry.objects.count() == 5000)
    assert set(QueueEntry.objects.values_list("pk", flat=True)) == ids
    assert_sound()


def test_due_jobs_reach_a_worker_in_their_order_and_none_starts_early(
    commands: Commands, ledger: Ledger
) -> None:
    commands.worker()
    commands.dispatcher()
    begin = clock.now() + AHEAD + timedelta(seconds=1)
    jobs = [
        schedule("test.ledger", {"ledger": str(ledger)}, due_at=begin + timedelta(milliseconds=20 * n))
        for n in range(60)
    ]
    wait_until(lambda: ledger.count("end") == 60)
    starts = [event for event in ledger.events if event.name == "start"]
    assert [event.job_id for event in starts] == [job.id for job in jobs]
    assert min(event.at - job.due_at.timestamp() for event, job in zip(starts, jobs, strict=True)) >= 0
    wait_until(lambda: not QueueEntry.objects.exists())
    assert_sound()


def test_sh_01_at_sigterm_a_dispatcher_ends_its_row_and_logs_no_error(commands: Commands) -> None:
    dispatcher = commands.dispatcher()
    wait_until(Process.objects.exists)
    dispatcher.send(signal.SIGTERM)
    assert dispatcher.wait(30) == 0
    assert Process.objects.get().ended_at is not None
    assert dispatcher.errors == []


def test_only_some_loops_run_when_asked(commands: Commands, connection: Connection) -> None:
    """The rescuer alone: it brings back what an expired process held, and dispatches nothing."""
    waiting = schedule(delay=timedelta(seconds=6))
    job = due_job()
    assert take(connection, "test.noop", process(connection, lease=timedelta(seconds=1)))
    commands.dispatcher("--only", "rescue")
    wait_until(lambda: job.state == JobState.QUEUED)
    wait_until(lambda: waiting.due_at < clock.now())
    assert waiting.state == JobState.SCHEDULED
    assert_sound()


def test_mi_07_a_dispatcher_whose_sessions_are_ended_goes_on(commands: Commands) -> None:
    dispatcher = commands.dispatcher("--only", "dispatch")
    for _ in range(3):
        with connections["default"].cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE application_name IN ('punctual dispatch', 'punctual heartbeat') AND datname = current_database()"
            )
        job = schedule(delay=AHEAD + timedelta(seconds=0.5))
        wait_until(lambda job=job: QueueEntry.objects.filter(pk=job.pk).exists())  # type: ignore[misc]
    assert dispatcher.process.poll() is None
    assert_sound()


def test_mi_07_a_dispatcher_whose_ticker_hangs_ends_with_an_error(
    process_env: dict[str, str], connection: Connection
) -> None:
    """It waits where no error reaches it; whoever runs the dispatcher starts another."""
    with subprocess.Popen([sys.executable, "-c", IMPATIENT], env=process_env, cwd=ROOT) as dispatcher:
        try:
            wait_until(lambda: Process.objects.filter(ended_at=None).exists())
            with connection.transaction():
                connection.execute("LOCK TABLE jobs_crondefinition IN ACCESS EXCLUSIVE MODE")
                assert dispatcher.wait(60) == STUCK
        finally:
            dispatcher.kill()
