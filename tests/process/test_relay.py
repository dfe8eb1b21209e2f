"""Jobs of tenants at their limit, one after the other in the same places, with real workers."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

import pytest
from django.db import connections

from jobs.models import Job, Outcome, QueueEntry, Tenant
from jobs.newjob import NewJob
from tests.commands import Commands, Event, Ledger
from tests.racing import assert_sound, due_job
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


def overlaps(events: Iterable[Event]) -> int:
    """The most bodies at once; one whose process was killed ran until its next start."""
    running, most = set[UUID](), 0
    for event in sorted(events, key=lambda event: event.at):
        (running.add if event.name == "start" else running.discard)(event.job_id)
        most = max(most, len(running))
    return most


def writer_of(table: str, job: Job) -> str:
    """The transaction that wrote its row."""
    with connections["default"].cursor() as cursor:
        cursor.execute(f"SELECT xmin::text FROM {table} WHERE job_id = %s", [job.pk])
        ((writer,),) = cursor.fetchall()
    return str(writer)


def test_one_transaction_settles_a_job_and_starts_the_next(
    commands: Commands, ledger: Ledger, tmp_path: Path
) -> None:
    Tenant.objects.create(slug="acme", max_running=1)
    gate = tmp_path / "gate"
    first = due_job("test.ledger", {"ledger": str(ledger), "seconds": 0.2}, queue="q", tenant="acme")
    next_one = due_job("test.waits", {"ledger": str(ledger), "until": str(gate)}, queue="q", tenant="acme")
    commands.worker("--queues", "q", threads=2)
    wait_until(lambda: next_one.pk in ledger.ids("start"))
    assert writer_of("jobs_outcome", first) == writer_of("jobs_queueentry", next_one)
    gate.touch()
    wait_until(lambda: Outcome.objects.count() == 2)
    assert_sound()


def test_limits_hold_and_nothing_is_lost_when_a_worker_is_killed(commands: Commands, ledger: Ledger) -> None:
    limits = {"one": 1, "two": 2}
    for slug, most in limits.items():
        Tenant.objects.create(slug=slug, max_running=most)
    commands.dispatcher("--only", "rescue")
    killed = commands.worker(processes=2, threads=2)
    new = [
        NewJob(job_type="test.ledger", payload={"ledger": str(ledger), "seconds": 0.02}, tenant=slug)
        for slug in limits
        for _ in range(25)
    ]
    jobs = dict(
        zip(
            [job_id for job_id, _ in Job.objects.schedule_many(new)],
            [each.tenant for each in new],
            strict=True,
        )
    )
    wait_until(lambda: ledger.count("end") >= 10)
    commands.worker(processes=2, threads=2)
    killed.send(signal.SIGKILL)
    wait_until(lambda: Outcome.objects.count() == 50, timeout=120.0)
    for slug, most in limits.items():
        assert overlaps(event for event in ledger.events if jobs[event.job_id] == slug) <= most
    assert ledger.ids("end") == set(jobs)
    assert not QueueEntry.objects.exists()
    assert_sound()


def test_results_that_wait_when_a_worker_is_told_to_stop_are_written(
    commands: Commands, ledger: Ledger
) -> None:
    Tenant.objects.create(slug="acme", max_running=2)
    worker = commands.worker(threads=2)
    for _ in range(40):
        due_job("test.ledger", {"ledger": str(ledger), "seconds": 0.01}, tenant="acme")
    wait_until(lambda: ledger.count("end") >= 6)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert not QueueEntry.objects.filter(lease_token__isnull=False).exists()
    assert Outcome.objects.count() == ledger.count("end") == ledger.count("start")
    assert_sound()
