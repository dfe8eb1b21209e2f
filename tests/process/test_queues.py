"""Several queues in one worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.models import Job, Outcome, QueueEntry, Tenant
from jobs.newjob import NewJob
from tests.commands import Commands
from tests.racing import assert_sound
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("transactional_db")]

BACKLOG = 5_000


def test_a_backlog_of_quick_jobs_in_one_queue_does_not_keep_a_limited_one_of_another_from_starting(
    commands: Commands, tmp_path: Path
) -> None:
    """A limited job is never claimed ahead: it needs a thread that is free."""
    quick = {"ledger": str(tmp_path / "quick"), "seconds": 0.002}  # the buffer never runs empty
    Job.objects.schedule_many(NewJob(job_type="test.ledger", payload=quick) for _ in range(BACKLOG))
    Tenant.objects.create(slug="limited", max_running=1)
    commands.worker("--queues", "test.ledger,test.echo", processes=1, threads=2)
    wait_until(lambda: Outcome.objects.count() > BACKLOG / 20, what="the worker in the middle of its backlog")
    limited = Job.objects.schedule("test.echo", {"value": 1}, tenant="limited", max_attempts=1)
    wait_until(Outcome.objects.filter(pk=limited.pk).exists, what="the limited job")
    assert QueueEntry.objects.filter(job_type="test.ledger").exists()
    Job.objects.filter(job_type="test.ledger").cancel()
    assert_sound()
