"""What a worker holds in memory has a bound: whatever its jobs do, and however large what they were asked is."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from jobs.models import Job, Outcome, QueueEntry
from jobs.newjob import NewJob
from tests.commands import Command, Commands
from tests.racing import assert_sound
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
MEGABYTE = 1_000_000


def resident(pid: int) -> int:
    """Bytes of it that are in memory, without what it shares with others of our processes."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * 4096


def child_of(worker: Command) -> int:
    (pid,) = worker.children
    return pid


def drain(jobs: list[NewJob]) -> None:
    Job.objects.schedule_many(jobs)
    wait_until(lambda: not QueueEntry.objects.exists(), timeout=120, what="an empty queue")


def test_me_01_jobs_that_come_and_go_leave_nothing_behind(commands: Commands) -> None:
    """Neither frames of their tracebacks nor, with DEBUG, what Django notes of their queries."""
    worker = commands.worker("--queues", "q", threads=4, DEBUG="1")
    noop = NewJob(job_type="test.noop", queue="q")
    verbose = NewJob(job_type="test.verbose", payload={"size": 20_000, "frames": 50}, queue="q")
    round_of = [*[noop] * 1500, *[verbose] * 150]
    for _ in range(2):
        drain(round_of)
    warm = resident(child_of(worker))
    for _ in range(3):
        drain(round_of)
    assert resident(child_of(worker)) - warm < 20 * MEGABYTE
    assert Outcome.objects.filter(state="failed").count() == 5 * 150
    assert_sound()


def test_me_01_large_payloads_are_claimed_a_few_at_a_time(commands: Commands, settings: Settings) -> None:
    """A burst of them after small ones: at first more are claimed than there is room for, and go back uncounted."""
    settings.SCHEDULER = {"payload_bytes": 2 * MEGABYTE}
    worker = commands.worker("--queues", "q", threads=2, SCHEDULER_PAYLOAD_BYTES=str(2 * MEGABYTE))
    drain([NewJob(job_type="test.noop", queue="q")] * 3000)
    before = most = resident(child_of(worker))
    large = [NewJob(job_type="test.noop", payload={"value": "x" * MEGABYTE}, queue="q")] * 300
    Job.objects.schedule_many(large)

    def done() -> bool:
        nonlocal most
        most = max(most, resident(child_of(worker)))
        return not QueueEntry.objects.exists()

    wait_until(done, timeout=120)
    assert most - before < 150 * MEGABYTE
    assert Outcome.objects.filter(state="completed", attempt=1).count() == 3300
    assert_sound()
