"""A worker runs every kind of handler; whatever a body does, its job ends as it should and the worker works on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from jobs.conf import conf
from jobs.models import Attempt, Job, Outcome, Queue, QueueEntry
from jobs.newjob import NewJob
from jobs.states import FINAL, JobState
from tests import commands as commands_of_tests
from tests.commands import Command, Commands, Ledger
from tests.emptying import empty_tables
from tests.handlers.tasks import Letter
from tests.racing import assert_sound, due_job
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("transactional_db")]
ALONE = "alone"
"""The queue of a second worker that has one thread."""


@pytest.fixture(scope="module")
def worker(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Command]:
    """One worker for all tests of this file: each gives it jobs of its own."""
    with django_db_blocker.unblock():
        env = commands_of_tests.environment()
        with commands_of_tests.commands(env, tmp_path_factory.mktemp("worker")) as started:
            started.worker("--queues", ALONE)
            yield started.worker(processes=2, threads=4)
        connections["default"].close()
        empty_tables()
        connections["default"].close()


@pytest.fixture
def transactional_db(worker: Command) -> None:
    """The tables are those of the whole file. (This name is how pytest-django knows that the test database is needed.)"""


def end_of(job: Job) -> Outcome:
    """How it ended."""
    outcome = Outcome.objects.filter(pk=job.pk)
    wait_until(outcome.exists, what=f"the end of {job}")
    return outcome.get()


def run(job_type: str, payload: Any = None, **options: Any) -> Outcome:
    return end_of(due_job(job_type, payload, **options))


def test_a_plain_handler_gets_its_payload_and_its_result_is_kept() -> None:
    outcome = run("test.echo", {"value": {"a": [1, None, "ü"]}})
    assert (outcome.state, outcome.attempt, outcome.result) == ("completed", 1, {"a": [1, None, "ü"]})


def test_the_garbage_collector_passes_over_what_stays_for_good() -> None:
    result: Any = run("test.collector").result
    assert result["frozen"] > 10_000
    assert result["new"] == 10_000


def test_an_async_handler_runs_on_the_loop_of_its_process(ledger: Ledger) -> None:
    jobs = [due_job("test.async", {"ledger": str(ledger), "seconds": 0.05}) for _ in range(5)]
    assert {end_of(job).result for job in jobs} == {"done"}
    assert ledger.ids("end") == {job.id for job in jobs}


def test_an_atomic_handler_writes_exactly_once_although_its_first_attempt_failed_after_the_write() -> None:
    job = due_job("test.atomic", {"slug": "once", "fail": True})
    assert (end_of(job).state, end_of(job).attempt) == ("completed", 2)
    assert Queue.objects.filter(name=f"once-{job.id}").count() == 1


def test_a_dataclass_payload_comes_back_as_it_was() -> None:
    number = uuid4()
    outcome = run("test.letter", Letter("ann@example.org", number, ["a", "b"]))
    assert outcome.result == {"to": "ann@example.org", "number": str(number), "lines": 2}


def test_a_result_that_cannot_be_stored_does_not_fail_a_body_that_ran() -> None:
    outcome = run("test.surrogate")
    assert (outcome.state, outcome.result) == ("completed", None)
    assert "not stored" in str(outcome.error)


def test_rx_05_a_job_that_fails_twice_is_retried_and_each_failure_is_kept() -> None:
    job = due_job("test.flaky", {"failures": 2})
    assert (end_of(job).state, end_of(job).result, end_of(job).attempt) == ("completed", 3, 3)
    attempts = Attempt.objects.filter(due_at=job.due_at, job_id=job.id).order_by("attempt")
    assert [(a.attempt, a.error_class, a.message) for a in attempts] == [
        (1, "RuntimeError", "failure 1"),
        (2, "RuntimeError", "failure 2"),
    ]
    assert "raise RuntimeError" in attempts[0].traceback


def test_a_retry_runs_when_its_back_off_has_passed_and_not_at_the_next_poll() -> None:
    """The worker that put it back knows when it is due."""
    job = due_job("test.flaky", {"failures": 10})
    outcome = end_of(job)
    first = Attempt.objects.get(due_at=job.due_at, job_id=job.id, attempt=1)
    assert outcome.finished_at - first.finished_at < 10 * conf().idle_poll / 2  # ten back-offs of 50 ms


def test_a_job_whose_attempts_are_used_up_ends_failed() -> None:
    outcome = run("test.flaky", {"failures": 9}, max_attempts=2)
    assert (outcome.state, outcome.attempt, outcome.error) == ("failed", 2, "RuntimeError: failure 2")


@pytest.mark.parametrize("kind", ["ValueError", "Fail", "SystemExit", "KeyboardInterrupt"])
def test_bx_01_rx_01_whatever_a_body_raises_fails_the_job_once_and_not_the_worker(
    kind: str, worker: Command
) -> None:
    children = worker.children
    outcome = run("test.raises", {"kind": kind, "message": "x"})
    assert (outcome.state, outcome.attempt) == ("failed", 1)
    assert str(outcome.error).endswith(f"{kind}: x")
    assert run("test.echo", {"value": 1}).result == 1
    assert worker.children == children


def test_bx_01_a_body_that_ends_its_process_fails_with_the_exit_status_and_the_child_is_replaced(
    worker: Command, ledger: Ledger
) -> None:
    outcome = run("test.exit", {"ledger": str(ledger)})
    assert (outcome.state, outcome.attempt, outcome.crashes) == ("failed", 1, 1)
    assert "exit status 3" in str(outcome.error)
    assert ledger.count("start") == 1
    wait_until(lambda: len(worker.children) >= 2)
    assert run("test.echo", {"value": 1}).result == 1


def test_rx_01_a_job_with_one_attempt_that_kills_its_process_is_started_once(ledger: Ledger) -> None:
    outcome = run("test.poison", {"ledger": str(ledger)}, max_attempts=1)
    assert (outcome.state, outcome.attempt) == ("failed", 1)
    assert ledger.count("start") == 1


def test_a_poison_job_fails_after_three_crashes_and_innocents_beside_it_complete(ledger: Ledger) -> None:
    innocents = [due_job("test.ledger", {"ledger": str(ledger)}, max_attempts=4) for _ in range(20)]
    poison = due_job("test.poison", {"ledger": str(ledger)})
    more = [due_job("test.ledger", {"ledger": str(ledger)}, max_attempts=4) for _ in range(20)]
    outcome = end_of(poison)
    assert (outcome.state, outcome.attempt, outcome.crashes) == ("failed", 3, 3)
    assert ledger.count("start", poison.id) == 3
    assert {end_of(job).state for job in innocents + more} == {"completed"}


def test_a_body_that_obeys_its_timeout_fails_with_it(worker: Command) -> None:
    children = worker.children
    outcome = run("test.prompt")
    assert (outcome.state, outcome.attempt) == ("failed", 1)
    assert "timeout" in str(outcome.error)
    assert worker.children == children


def test_rx_01_a_body_that_ignores_its_timeout_is_killed_and_only_it_is_counted(ledger: Ledger) -> None:
    late = due_job("test.late", {"ledger": str(ledger)}, max_attempts=1)
    beside = [due_job("test.ledger", {"ledger": str(ledger), "seconds": 1.0}) for _ in range(8)]
    outcome = end_of(late)
    assert (outcome.state, outcome.attempt) == ("failed", 1)
    assert "hard timeout" in str(outcome.error)
    assert ledger.count("start", late.id) == 1
    assert {(end_of(job).state, end_of(job).attempt) for job in beside} == {("completed", 1)}


def test_a_running_job_that_is_cancelled_stops_and_ends_cancelled(ledger: Ledger) -> None:
    job = due_job("test.polite", {"ledger": str(ledger)})
    wait_until(lambda: ledger.count("start", job.id))
    assert job.cancel().requested == 1
    assert end_of(job).state == JobState.CANCELLED
    assert ledger.count("end") == 0


def test_a_snoozed_job_comes_back_uncounted_until_it_is_done(ledger: Ledger, tmp_path: Any) -> None:
    job = due_job("test.snooze", {"until": str(tmp_path / "gate"), "ledger": str(ledger)})
    wait_until(lambda: ledger.count("start", job.id) >= 3)
    (tmp_path / "gate").touch()
    assert (end_of(job).state, end_of(job).attempt) == ("completed", 1)


@pytest.mark.parametrize(
    "how", ["closed", "transaction", "begin", "aborted", "caught", "killed", "settings", "session", "zone"]
)
def test_cx_01_cx_02_cx_04_what_a_body_does_to_its_connection_does_not_reach_the_next_job(how: str) -> None:
    """In the one thread of a worker, so on the same connection."""
    spoiler = due_job("test.spoils", {"how": how}, queue=ALONE, max_attempts=1)
    assert end_of(spoiler).state in FINAL
    after = [due_job("test.queries", queue=ALONE, max_attempts=1) for _ in range(3)]
    assert [(end_of(job).state, end_of(job).error) for job in after] == [("completed", None)] * 3


@pytest.mark.parametrize(
    "how", ["closed", "transaction", "begin", "aborted", "killed", "settings", "session"]
)
def test_cx_01_cx_02_cx_04_what_an_async_body_does_to_its_connection_reaches_no_other(how: str) -> None:
    """asgiref runs the queries of all of them in one thread, unless it is told not to."""
    spoiler = due_job("test.aspoils", {"how": how}, max_attempts=1)
    assert end_of(spoiler).state in FINAL
    after = [due_job("test.aqueries") for _ in range(3)]
    assert [(end_of(job).state, end_of(job).error) for job in after] == [("completed", None)] * 3


@pytest.mark.parametrize(("how", "state"), [("exit", "failed"), ("task", "completed"), ("stop", "completed")])
def test_bx_01_what_ends_a_process_ends_no_event_loop(how: str, state: str, worker: Command) -> None:
    children = worker.children
    beside = [due_job("test.aspoils", {"how": "zone"}) for _ in range(4)]
    assert run("test.aspoils", {"how": how}).state == state
    assert {end_of(job).state for job in beside} == {"completed"}
    after = [due_job("test.aqueries") for _ in range(8)]
    assert {end_of(job).state for job in after} == {"completed"}
    assert worker.children == children


def test_lk_01_a_worker_holds_a_connection_for_each_thread_and_two_for_each_process() -> None:
    Job.objects.schedule_many([NewJob(job_type="test.queries", group="many")] * 300)
    sessions = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'punctual worker %' "
        "AND datname = current_database() GROUP BY application_name"
    )
    most = 0

    def done() -> bool:
        nonlocal most
        with connections["default"].cursor() as cursor:
            cursor.execute(sessions)
            most = max(most, *(count for (count,) in cursor.fetchall()))
        return not QueueEntry.objects.filter(group="many").exists()

    wait_until(done)
    assert 2 < most <= 4 + 2


def test_lk_01_connections_that_bodies_leave_open_are_told(worker: Command, tmp_path: Path) -> None:
    """Nobody but their threads can close them; "too many clients" comes later."""
    gate = tmp_path / "gate"
    assert run("test.leaks", {"count": 12, "until": str(gate)}).state == "completed"
    worker.says("bodies have left connections open")
    gate.touch()
    assert "sessions=" in next(line for line in worker.log.splitlines() if "left connections open" in line)


def test_fk_01_a_body_may_fork(worker: Command) -> None:
    """Of the copies none touches a connection of the worker, and none stays."""
    outcomes = [run("test.forks", {"count": 3}) for _ in range(3)]
    assert [(each.state, each.result) for each in outcomes] == [("completed", 6)] * 3
    assert run("test.queries").state == "completed"


def test_fk_01_a_body_ends_a_process_that_it_has_only_just_forked(worker: Command) -> None:
    """`Pool` ends its own so, and waits for them."""
    outcome = run("test.terminates", {"count": 5})
    assert (outcome.state, outcome.result) == ("completed", [-signal.SIGTERM] * 5)


def test_un_01_rd_01_an_unknown_type_is_parked_and_runs_when_a_worker_knows_it_and_never_fails(
    commands: Commands, ledger: Ledger, worker: Command, settings: Any
) -> None:
    settings.SCHEDULER = {"external_types": ["test.newer"]}
    job = due_job("test.newer", {"ledger": str(ledger)}, queue="test.noop")
    wait_until(lambda: QueueEntry.objects.filter(pk=job.pk, parked="type").exists(), what="the park")
    assert run("test.noop").state == "completed"  # the others of the queue are not held up
    newer = commands.worker("--queues", "test.noop", SCHEDULER_APPS="tests.handlers,tests.newer")
    assert end_of(job).state == "completed"
    many = [due_job("test.newer", {"ledger": str(ledger)}, queue="test.noop") for _ in range(20)]
    assert {(end_of(job).state, end_of(job).attempt) for job in many} == {("completed", 1)}
    assert {event.pid for event in ledger.events} == set(newer.children)


def test_after_all_this_every_job_is_in_one_place() -> None:
    wait_until(lambda: not QueueEntry.objects.exists())
    assert_sound()
