"""Signals to a worker: a deploy loses nothing, counts nothing and logs no error; a kill costs one attempt."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from jobs.leases import rescue
from jobs.models import Job, Outcome, QueueEntry
from jobs.newjob import NewJob
from jobs.results import Completed
from jobs.states import JobState
from tests.commands import Commands, Ledger, is_alive
from tests.factories import claim, finish, process
from tests.racing import Connection, assert_sound, due_job
from tests.waiting import wait_until

pytestmark = pytest.mark.process


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """The file that lets bodies of `test.waits` end."""
    return tmp_path / "gate"


def waiting_job(ledger: Ledger, gate: Path) -> Job:
    return due_job("test.waits", {"ledger": str(ledger), "until": str(gate)})


def running(ledger: Ledger, gate: Path, number: int = 1) -> list[Job]:
    """So many jobs whose bodies have begun."""
    before = ledger.count("start")
    jobs = [waiting_job(ledger, gate) for _ in range(number)]
    wait_until(lambda: ledger.count("start") == before + number, what="bodies that run")
    return jobs


def test_sh_01_at_sigterm_what_runs_may_end_and_what_waits_goes_back_uncounted(
    commands: Commands, ledger: Ledger, gate: Path
) -> None:
    worker = commands.worker("--queues", "q")
    warm = Job.objects.schedule_many([NewJob(job_type="test.noop", queue="q")] * 30)
    wait_until(lambda: Outcome.objects.filter(pk__in=[job_id for job_id, _ in warm]).count() == 30)
    # quick bodies were measured: so it claims ahead, and these wait behind the first one
    payload = {"ledger": str(ledger), "until": str(gate)}
    first, *others = Job.objects.schedule_many(
        NewJob(job_type="test.waits", payload=payload, queue="q", delay=timedelta(seconds=n - 20))
        for n in range(10)
    )
    wait_until(lambda: ledger.count("start") == 1)
    worker.send(signal.SIGTERM)
    waiting = QueueEntry.objects.filter(pk__in=[job_id for job_id, _ in others])
    wait_until(lambda: not waiting.exclude(lease_token=None).exists(), what="claims that were given back")
    gate.touch()
    assert worker.wait() == 0
    assert ledger.ids("end") == {first[0]}
    assert Job.objects.get(pk=first[0]).state == JobState.COMPLETED
    assert set(waiting.values_list("attempt", "crashes")) == {(0, 0)}
    assert waiting.count() == 9
    assert worker.errors == []
    assert_sound()


def test_sh_01_when_the_terminal_is_closed_what_runs_may_end(
    commands: Commands, ledger: Ledger, gate: Path
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup a worker ignores it, as it should
    worker = commands.worker()
    signal.signal(signal.SIGHUP, before)
    (job,) = running(ledger, gate)
    for _ in range(2):  # the kernel's and the shell's; to the whole group
        os.killpg(worker.process.pid, signal.SIGHUP)
    gate.touch()
    assert worker.wait() == 0
    assert [event.name for event in ledger.events] == ["start", "end"]
    assert (job.state, Outcome.objects.get(pk=job.pk).attempt) == (JobState.COMPLETED, 1)
    assert worker.errors == []


def test_rx_03_what_outlives_the_grace_period_goes_back_uncounted_and_runs_again_only_after_its_death(
    commands: Commands, ledger: Ledger, gate: Path
) -> None:
    worker = commands.worker()
    job = due_job("test.waits", {"ledger": str(ledger), "until": str(gate)}, max_attempts=1)
    wait_until(lambda: ledger.count("start") == 1)
    worker.send(signal.SIGTERM)
    next_worker = commands.worker()
    assert worker.wait() == 0
    wait_until(lambda: ledger.count("start") == 2, what="its second run")
    first, second = ledger.events
    assert not is_alive(first.pid)
    assert (first.attempt, second.attempt) == (1, 1)
    gate.touch()
    wait_until(lambda: job.state == JobState.COMPLETED)
    assert [event.pid for event in ledger.events] == [first.pid, second.pid, second.pid]
    assert worker.errors + next_worker.errors == []
    assert_sound()


def test_a_second_sigterm_leaves_at_once(commands: Commands, ledger: Ledger, gate: Path) -> None:
    worker = commands.worker(SCHEDULER_GRACE="600")
    running(ledger, gate)
    worker.send(signal.SIGTERM)
    worker.says("draining")
    worker.send(signal.SIGTERM)
    assert worker.wait(30) == 0
    entry = QueueEntry.objects.get()
    assert (entry.lease_token, entry.attempt, entry.crashes) == (None, 0, 0)
    assert not is_alive(ledger.events[0].pid)
    assert_sound()


def test_cl_01_a_killed_child_is_replaced_and_its_jobs_run_again(
    commands: Commands, ledger: Ledger, gate: Path
) -> None:
    worker = commands.worker(threads=10)
    jobs = running(ledger, gate, 10)
    os.kill(worker.children[0], signal.SIGKILL)
    gate.touch()
    wait_until(lambda: ledger.ids("end") == {job.id for job in jobs})
    wait_until(lambda: not QueueEntry.objects.exists())
    outcomes = Outcome.objects.filter(pk__in=[job.id for job in jobs])
    assert set(outcomes.values_list("state", "attempt", "crashes")) == {("completed", 2, 1)}
    assert_sound()


def test_cl_01_children_of_a_killed_supervisor_die_with_it_and_their_jobs_come_back(
    commands: Commands, ledger: Ledger, gate: Path, connection: Connection
) -> None:
    worker = commands.worker(processes=2, threads=5)
    jobs = running(ledger, gate, 10)
    children = worker.children
    worker.send(signal.SIGKILL)
    wait_until(lambda: not any(is_alive(pid) for pid in children), what="the end of the children")
    commands.worker(threads=5)
    gate.touch()
    saved: set[UUID] = set()

    def all_ended() -> bool:
        saved.update(rescue(connection).fates)  # within a lease, as nobody renews it
        return ledger.ids("end") == {job.id for job in jobs} and not QueueEntry.objects.exists()

    wait_until(all_ended, what="the second run of all")
    assert saved == {job.id for job in jobs}
    assert set(Outcome.objects.filter(pk__in=saved).values_list("state", "crashes")) == {("completed", 1)}
    assert_sound()


def test_le_05_a_supervisor_that_was_stopped_beyond_its_lease_is_fenced_and_starts_anew(
    commands: Commands, ledger: Ledger, gate: Path, connection: Connection
) -> None:
    worker = commands.worker()
    (job,) = running(ledger, gate)
    worker.send(signal.SIGSTOP)
    wait_until(lambda: rescue(connection).fates, what="the end of its lease")
    held = claim(connection, job, process(connection))
    gate.touch()  # the first body ends, and reports with its old token
    wait_until(lambda: ledger.count("end") == 1)
    worker.send(signal.SIGCONT)
    worker.says("worker started", 2)
    assert QueueEntry.objects.get().lease_token == held.held.lease_token
    finish(connection, held, Completed('"second"'))
    assert Outcome.objects.get(pk=job.id).result == "second"
    again = due_job("test.echo", {"value": 1})
    wait_until(lambda: again.state == JobState.COMPLETED)
    assert_sound()


def test_le_05_no_body_under_a_limit_outlives_the_lease_of_a_supervisor_that_was_stopped(
    commands: Commands, ledger: Ledger, gate: Path, connection: Connection
) -> None:
    worker = commands.worker()
    payload = {"ledger": str(ledger), "until": str(gate)}
    job = due_job("test.waits", payload, concurrency_key="k")
    wait_until(lambda: ledger.count("start") == 1)
    (child,) = worker.children
    worker.send(signal.SIGSTOP)
    wait_until(lambda: rescue(connection).fates, what="the end of its lease")
    assert not is_alive(child)
    worker.send(signal.SIGCONT)
    wait_until(lambda: ledger.count("start") == 2, what="the second run")
    gate.touch()
    wait_until(lambda: job.state == JobState.COMPLETED)
    assert ledger.count("end") == 1
    assert_sound()


def test_le_01_a_job_that_runs_for_longer_than_the_lease_is_started_once(
    commands: Commands, ledger: Ledger, gate: Path, connection: Connection
) -> None:
    worker = commands.worker(SCHEDULER_LEASE="1")
    (job,) = running(ledger, gate)
    expires = "SELECT lease_expires_at > started_at + interval '3 s' FROM jobs_process WHERE kind = 'worker'"
    wait_until(lambda: connection.execute(expires).fetchone() == (True,), what="three renewals")
    assert rescue(connection).fates == {}
    gate.touch()
    wait_until(lambda: job.state == JobState.COMPLETED)
    assert ledger.count("start") == 1
    assert worker.errors == []
    assert_sound()
