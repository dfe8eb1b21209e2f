"""Unique keys: of any number of concurrent callers one creates the job, and the others are told which it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from jobs import verbs
from jobs.errors import LockTimeout
from jobs.models import Job, UniqueKey
from jobs.newjob import NewJob
from jobs.report import Report
from jobs.results import Completed
from jobs.states import JobState
from tests.factories import claim, failed, finish, process, schedule
from tests.racing import Connection, assert_sound, at_once, beside, due_job, pid_of_django, wait_for_waiter

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]


def test_of_two_callers_with_one_key_the_second_waits_and_gets_the_job_of_the_first() -> None:
    with transaction.atomic():
        first = schedule(unique_key="k")
        future = beside(lambda: schedule(unique_key="k"))
        wait_for_waiter(pid_of_django())
    second = future.result(30)
    assert (first.was_created, second.was_created) == (True, False)
    assert second.id == first.id
    assert Job.objects.filter(pk__in=[first.id, second.id]).count() == 1
    assert_sound()


def test_a_caller_who_waited_wins_when_the_first_rolls_back() -> None:
    with transaction.atomic():
        first = schedule(unique_key="k")
        future = beside(lambda: schedule(unique_key="k"))
        wait_for_waiter(pid_of_django())
        transaction.set_rollback(True)
    second = future.result(30)
    assert second.was_created
    assert second.id != first.id
    assert UniqueKey.objects.get().job_id == second.id
    assert_sound()


def test_two_callers_who_take_two_keys_in_opposite_order_do_not_deadlock(connection: Connection) -> None:
    """Both stop at the key in the middle; had they taken them as given, each would now have what the other needs."""
    keys = ["a", "b", "c"]

    def many(names: list[str]) -> list[tuple[UUID, bool]]:
        return Job.objects.schedule_many(NewJob(job_type="test.noop", unique_key=name) for name in names)

    with transaction.atomic():
        schedule(unique_key="b")
        forth = beside(lambda: many(keys))
        wait_for_waiter(pid_of_django())
        back = beside(lambda: many(keys[::-1]))
        wait_for_waiter(pid_of_django(), 2)
    answers = [*forth.result(30), *back.result(30)]
    assert [created for _, created in answers].count(True) == 2  # "a" and "c"
    assert len({job_id for job_id, _ in answers}) == 3
    assert_sound()


def test_uq_05_of_twenty_sessions_with_one_key_and_two_due_days_one_creates_the_job() -> None:

    def today_or_later(days: int) -> Callable[[Connection], Job]:
        return lambda own: schedule(delay=timedelta(days=days), unique_key="k")

    jobs = at_once([today_or_later(days) for days in [0, 2] * 10])
    assert [job.was_created for job in jobs].count(True) == 1
    assert len({job.id for job in jobs}) == 1
    assert_sound()


def test_a_bounded_wait_for_a_key_ends_in_an_error_that_leaves_the_callers_transaction_usable(
    settings: Any,
) -> None:
    settings.SCHEDULER = {"schedule_lock_timeout": 0.2}

    def caller() -> Job:
        with transaction.atomic():
            with pytest.raises(LockTimeout):
                schedule(unique_key="k")
            return schedule(unique_key="other")

    with transaction.atomic():
        schedule(unique_key="k")
        future = beside(caller)
        assert future.result(30).was_created
    assert_sound()


def test_a_key_whose_job_is_being_settled_names_that_job_and_is_free_after(connection: Connection) -> None:
    """The delete of the key is waited for, and then it is gone: the waiter wins it."""
    job = due_job(unique_key="k")
    held = claim(connection, job, process(connection))
    with connection.transaction():
        finish(connection, held, Completed())
        future = beside(lambda: schedule(unique_key="k"))
        wait_for_waiter(connection)
    second = future.result(30)
    assert second.was_created
    assert second.id != job.id
    assert_sound()


def test_uq_01_a_retry_waits_for_a_new_holder_of_its_key_and_is_refused_by_name(
    connection: Connection,
) -> None:
    job = due_job(unique_key="k")
    finish(connection, claim(connection, job, process(connection)), failed(final=True))
    with transaction.atomic():
        holder = schedule(unique_key="k")
        report = beside(lambda: verbs.retry([job.id]))
        wait_for_waiter(pid_of_django())
    assert report.result(30) == Report(skipped=Counter({f"unique key held by {holder.id}": 1}))
    assert job.state == JobState.FAILED
    assert_sound()


def test_uq_01_a_caller_waits_for_a_retry_that_took_the_key_again_and_gets_its_job(
    connection: Connection,
) -> None:
    job = due_job(unique_key="k")
    finish(connection, claim(connection, job, process(connection)), failed(final=True))
    with transaction.atomic():
        assert job.retry().changed == 1
        future = beside(lambda: schedule(unique_key="k"))
        wait_for_waiter(pid_of_django())
    assert (future.result(30).id, future.result(30).was_created) == (job.id, False)
    assert_sound()


def test_a_retry_that_lost_to_another_operator_does_not_take_his_key_away(connection: Connection) -> None:
    job = due_job(unique_key="k")
    finish(connection, claim(connection, job, process(connection)), failed(final=True))
    with transaction.atomic():
        assert job.retry().changed == 1
        second = beside(lambda: verbs.retry([job.id]))
        wait_for_waiter(pid_of_django())
    assert second.result(30).changed == 0
    assert UniqueKey.objects.get().job_id == job.id
    assert_sound()
