"""Callers who manage their transactions by hand: `set_autocommit(False)`, or AUTOCOMMIT False for the database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import transaction

from jobs.models import Job, QueueEntry, Timer
from jobs.newjob import NewJob
from tests.factories import schedule


@pytest.fixture(autouse=True)
def _by_hand(transactional_db: None) -> Iterator[None]:
    transaction.set_autocommit(False)
    try:
        yield
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)


def test_a_job_is_there_once_it_is_committed_though_nobody_is_told() -> None:
    """Workers find it when they poll, and a dispatcher admits it to its key."""
    job = schedule(concurrency_key="k")
    many = Job.objects.schedule_many([NewJob(job_type="test.noop")])
    transaction.commit()
    assert set(QueueEntry.objects.values_list("job_id", flat=True)) == {job.pk, many[0][0]}


def test_a_job_is_gone_with_the_rollback() -> None:
    schedule()
    transaction.rollback()
    assert not Job.objects.exists()


def test_verbs_need_no_commit_either() -> None:
    job = schedule(delay=timedelta(hours=1), concurrency_key="k")
    assert job.cancel().changed == 1
    assert job.retry().changed == 1
    transaction.commit()
    assert Timer.objects.exists() != QueueEntry.objects.exists()
