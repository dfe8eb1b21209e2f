"""Bulk operations: what a search finds is what they change, piece by piece, with everything told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from dispatch.operations import Operations
from jobs import clock, operations, operator
from jobs.leases import fetch
from jobs.models import (
    Job,
    Operation,
    OperationChunk,
    OperatorAction,
    Outcome,
    QueueEntry,
    TenantMember,
    Timer,
)
from jobs.models.operation import OPEN, OperationState
from jobs.newjob import NewJob
from jobs.operations import OperationRefused, limits, run
from jobs.operations.control import visible
from jobs.results import Completed
from jobs.search import SearchError
from tests.db.test_admin_tools import user_with
from tests.db.verbs import job_so, places
from tests.factories import Connection, claim, come_due, failed, finish, process, schedule, take

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
ALL = ("retry_job", "cancel_job", "reschedule_job", "prioritize_job", "move_job", "bulk_job")


@pytest.fixture
def boss() -> User:
    return user_with(*ALL, "bulk_any")


def many(count: int, **options: Any) -> list[Any]:
    new = [
        NewJob(**{"job_type": "test.noop", "delay": HOUR + timedelta(seconds=n), **options})
        for n in range(count)
    ]
    return [job_id for job_id, _ in Job.objects.schedule_many(new)]


def finish_off(operation: Operation, steps: int = 1000) -> Operation:
    """Chunk after chunk, whatever the rate, up to `steps` of them."""
    for _ in range(steps):
        Operation.objects.filter(pk=operation.pk).update(next_at=operation.created_at - HOUR)
        if operations.run_chunk(operation_id=operation.pk) is None:
            break
    operation.refresh_from_db()
    return operation


def states(ids: list[Any]) -> set[str]:
    return {str(Job.objects.get(pk=job_id).state) for job_id in ids}


def test_bk_01_everything_that_fits_is_cancelled_in_pieces_and_nothing_else(
    boss: User, here: Connection
) -> None:
    mine, others = many(1203, group="spring"), many(3, group="autumn")
    operation = finish_off(operations.submit(boss, "cancel", "group:spring due:today..+2d", "recalled"))
    assert (operation.state, operation.looked, operation.changed, operation.skipped) == (
        "done",
        1203,
        1203,
        {},
    )
    assert (operation.chunks, operation.expected, operation.expected_how) == (3, 1203, "exact")
    assert Outcome.objects.filter(action_id=operation.action_id, state="cancelled").count() == 1203
    assert sorted(job_id for chunk in operation.pieces.all() for job_id in chunk.ids) == sorted(mine)
    assert states(others) == {"scheduled"}
    action = OperatorAction.objects.get(pk=operation.action_id)
    assert (action.verb, action.reason, action.operation_id) == ("cancel all", "recalled", operation.pk)


@pytest.mark.parametrize(
    ("verb", "given", "situation"),
    [
        ("cancel", {}, "scheduled"), ("cancel", {}, "queued"), ("cancel", {}, "retryable"), ("cancel", {}, "snoozed"),
        ("retry", {}, "failed"), ("retry", {}, "cancelled"), ("reschedule", {"run_at": 3}, "scheduled"),
        ("reschedule", {"run_at": 3}, "queued"), ("prioritize", {"priority": 7}, "scheduled"),
        ("prioritize", {"priority": 7}, "queued"), ("move", {"queue": "other"}, "scheduled"),
        ("move", {"queue": "other"}, "retryable"),
    ],
)  # fmt: skip
def test_a_verb_changes_what_it_is_for_and_undo_brings_it_back(
    boss: User, here: Connection, verb: str, given: dict[str, Any], situation: str
) -> None:
    job = job_so(situation, here, group="g")
    given = {name: clock.now() + value * HOUR if name == "run_at" else value for name, value in given.items()}
    before = _place(job)
    operation = finish_off(operations.submit(boss, verb, "group:g due:-1d..+2d", "why", arguments=given))
    assert (operation.state, operation.changed) == ("done", 1)
    assert len(places(here, job)) == 1
    changed = _place(job)
    assert changed != before
    back = finish_off(operations.undo(boss, operation.pk, "a mistake"))
    assert (back.state, back.changed, back.skipped) == ("done", 1, {})
    after = _place(job)
    assert len(places(here, job)) == 1
    if verb in ("prioritize", "move"):
        assert after[1:3] == before[1:3]
    if verb == "reschedule":
        assert after[3] == before[3] or situation == "queued"  # never earlier than now
    if verb == "cancel":
        assert after[0] in ("scheduled", "queued")
    if verb == "retry":
        assert after[0] == "cancelled"


def _place(job: Any) -> tuple[Any, ...]:
    """State, queue, priority and run time, from wherever the job is."""
    job = Job.objects.get(pk=job.pk)
    for model in (Timer, QueueEntry):
        if row := model.objects.filter(job_id=job.pk).first():
            return str(job.state), row.queue, row.priority, getattr(row, "run_at", row.due_at)
    return str(job.state), None, None, None


def test_undo_leaves_alone_what_has_changed_since(boss: User, here: Connection) -> None:
    one, two = (job_so("failed", here, group="g") for _ in range(2))
    operation = finish_off(operations.submit(boss, "retry", "group:g state:failed", "mended"))
    assert operation.changed == 2
    finish(here, claim(here, one, process(here)), failed(final=True))
    back = finish_off(operations.undo(boss, operation.pk, "not mended"))
    assert states([two.pk]) == {"cancelled"} or back.skipped
    assert back.changed + sum(back.skipped.values()) == 2
    assert states([one.pk]) == {"failed"}


def test_what_was_scheduled_after_the_start_is_left_alone(boss: User, here: Connection) -> None:
    many(2, group="g")
    operation = operations.submit(boss, "cancel", "group:g due:today..+2d", "why")
    here.execute("UPDATE jobs_job SET created_at = created_at - interval '1 min'")
    late = many(1, group="g")
    here.execute("UPDATE jobs_job SET created_at = clock_timestamp() WHERE id = %s", late)
    operation = finish_off(operation)
    assert (operation.changed, operation.skipped) == (2, {"scheduled after it was started": 1})
    assert states(late) == {"scheduled"}


def test_what_fails_again_is_not_retried_by_the_same_operation(boss: User, here: Connection) -> None:
    job = job_so("failed", here, group="g")
    operation = operations.submit(boss, "retry", "group:g state:failed", "mended")
    here.execute("UPDATE jobs_outcome SET finished_at = clock_timestamp() WHERE job_id = %s", [job.pk])
    operation = finish_off(operation)
    assert (operation.changed, operation.skipped) == (0, {"ended after it was started": 1})


def test_running_jobs_are_asked_to_stop_and_counted_apart(boss: User, here: Connection) -> None:
    job_so("running", here, group="g")
    many(1, group="g")
    operation = finish_off(operations.submit(boss, "cancel", "group:g due:today..+2d", "why"))
    assert (operation.changed, operation.requested) == (1, 1)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "on all jobs there are"),
        ("due:today", "on all jobs there are"),
        ("state:completed", "None of these jobs can be changed"),
        ("stat:x", "There is no term"),
        ("tenant:nobody", "There is no tenant"),
    ],
)
def test_a_search_that_is_no_target_is_refused(boss: User, line: str, told: str) -> None:
    with pytest.raises(SearchError, match=told):
        operations.submit(boss, "cancel", line, "why")
    with pytest.raises(SearchError, match=told):
        operations.preview(boss, "cancel", line)
    assert not Operation.objects.exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"reason": "  "}, "needs a reason"),
        ({"rate": 0}, "the rate is 0"),
        ({"rate": 100_000}, "the rate is 100000"),
        ({"line": "group:nothing"}, "no job fits"),
        ({"verb": "move"}, "move takes queue, not none"),
        ({"verb": "move", "arguments": {"queue": ""}}, "1 to 100 are allowed"),
        ({"verb": "prioritize", "arguments": {"priority": 101}}, "from -100 to 100"),
        ({"verb": "prioritize", "arguments": {"priority": True}}, "from -100 to 100"),
        ({"verb": "reschedule", "arguments": {"run_at": "tomorrow"}}, "not an aware datetime"),
        ({"arguments": {"queue": "x"}}, "cancel takes no arguments, not queue"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_started(boss: User, given: dict[str, Any], told: str) -> None:
    many(1, group="g")
    asked = {"verb": "cancel", "line": "group:g due:today..+2d", "reason": "why"} | given
    with pytest.raises(OperationRefused, match=told):
        operations.submit(boss, **asked)
    assert not Operation.objects.exists()


def test_more_than_a_user_may_change_is_refused_and_recorded() -> None:
    many(1001, group="g")
    user = user_with(*ALL)
    found = operations.preview(user, "cancel", "group:g due:today..+2d")
    assert (found.ceiling, found.too_many, found.must_type, found.to_type) == (1000, True, True, "1001")
    with pytest.raises(OperationRefused, match="1,001 jobs fit, and you may change 1,000"):
        operations.submit(user, "cancel", "group:g due:today..+2d", "why")
    assert OperatorAction.objects.get().result == "failed"


def test_a_preview_finds_what_the_operation_changes(boss: User, here: Connection) -> None:
    for situation in ("failed", "cancelled", "completed", "queued"):
        job_so(situation, here, group="g")
    found = operations.preview(boss, "retry", "group:g")
    assert (str(found.count), len(found.samples)) == ("2", 2)
    operation = finish_off(operations.submit(boss, "retry", "group:g", "why"))
    assert (operation.looked, operation.changed) == (2, 2)


def test_the_limit_of_an_operation_holds_while_it_runs(boss: User, here: Connection) -> None:
    many(30, group="g")
    operation = operations.submit(boss, "cancel", "group:g due:today..+2d", "why")
    Operation.objects.update(ceiling=20)
    operation = finish_off(operation)
    assert (operation.state, operation.changed) == ("paused", 20)
    assert "its limit" in operation.note
    operations.resume(boss, operation.pk)
    operation = finish_off(operation)
    assert (operation.state, operation.changed) == ("done", 30)


def test_it_is_paused_resumed_and_stopped(boss: User, here: Connection) -> None:
    many(1500, group="g")
    operation = finish_off(operations.submit(boss, "cancel", "group:g due:today..+2d", "why"), steps=1)
    operations.pause(boss, operation.pk, "wait")
    assert finish_off(operation).changed == 500
    operations.resume(boss, operation.pk)
    assert finish_off(operation, steps=1).changed == 1000
    operations.stop(boss, operation.pk, "enough")
    operation = finish_off(operation)
    assert (operation.state, operation.changed, operation.ended_at is not None) == ("stopped", 1000, True)
    with pytest.raises(OperationRefused, match="is stopped"):
        operations.resume(boss, operation.pk)
    told = list(OperatorAction.objects.filter(operation_id=operation.pk).values_list("verb", "after__state"))
    assert told == [
        ("stop operation", "stopped"),
        ("resume operation", "running"),
        ("pause operation", "paused"),
        ("cancel all", None),
    ]


def test_a_slow_operation_keeps_to_its_rate(boss: User, here: Connection) -> None:
    many(30, group="g")
    operation = operations.submit(boss, "cancel", "group:g due:today..+2d", "why", rate=10)
    assert operations.run_chunk() == 10
    assert operations.run_chunk() is None
    operation.refresh_from_db()
    assert operation.heartbeat_at
    assert operation.next_at - operation.heartbeat_at == timedelta(seconds=1)


def test_retries_slow_down_while_the_queues_are_behind(
    boss: User, here: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_so("failed", here, group="g")
    monkeypatch.setattr(run, "_is_behind", lambda now, using: True)
    operation = operations.submit(boss, "retry", "group:g", "why", rate=10)
    operations.run_chunk()
    operation.refresh_from_db()
    assert operation.heartbeat_at
    assert operation.next_at - operation.heartbeat_at == timedelta(seconds=0.4)


@pytest.fixture
def small_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.operations.start.PROBE", 4)


def _failed_jobs(here: Connection, count: int) -> None:
    many(count, group="g", delay=timedelta())
    _run_all(here, lambda job_id: failed(final=True))


def _run_all(here: Connection, result: Any) -> None:
    come_due(here)
    claims, _ = fetch(here, take(here, "test.noop", process(here)))
    for each in claims:
        finish(here, each, result(each.held.job_id))


@pytest.mark.usefixtures("small_probe")
def test_a_probe_that_fails_again_pauses_it(boss: User, here: Connection) -> None:
    _failed_jobs(here, 8)
    operation = operations.submit(boss, "retry", "group:g", "mended?")
    operation = finish_off(operation, steps=2)
    assert (operation.state, operation.changed) == ("probing", 4)
    _run_all(here, lambda job_id: failed(final=job_id.int % 2 == 0))
    operation = finish_off(operation)
    assert (operation.state, operation.changed) == ("paused", 4)
    assert operation.note == "Of the first 4 jobs 4 failed again."
    operations.resume(boss, operation.pk, "try all the same")
    operation = finish_off(operation)
    assert (operation.state, operation.changed) == ("done", 8)


@pytest.mark.usefixtures("small_probe")
def test_a_probe_that_succeeds_lets_the_rest_go(boss: User, here: Connection) -> None:
    _failed_jobs(here, 8)
    operation = finish_off(operations.submit(boss, "retry", "group:g", "mended"), steps=1)
    _run_all(here, lambda job_id: Completed())
    operation = finish_off(operation)
    assert (operation.state, operation.changed) == ("done", 8)


@pytest.mark.usefixtures("small_probe")
def test_a_probe_that_does_not_end_pauses_it(boss: User, here: Connection) -> None:
    _failed_jobs(here, 8)
    operation = finish_off(operations.submit(boss, "retry", "group:g", "mended"), steps=1)
    OperationChunk.objects.update(at=operation.created_at - HOUR)
    operation = finish_off(operation)
    assert operation.state == "paused"
    assert "only 0 have ended" in operation.note


def test_a_permission_that_is_taken_away_ends_it(boss: User, here: Connection) -> None:
    many(600, group="g")
    operation = finish_off(operations.submit(boss, "cancel", "group:g due:today..+2d", "why"), steps=1)
    boss.user_permissions.remove(Permission.objects.get(codename="cancel_job"))
    operation = finish_off(operation)
    assert (operation.state, operation.changed) == ("failed", 500)
    assert "jobs.cancel_job" in operation.note


def test_an_account_that_is_gone_ends_it(boss: User, here: Connection) -> None:
    many(2, group="g")
    operation = operations.submit(boss, "cancel", "group:g due:today..+2d", "why")
    User.objects.filter(pk=boss.pk).delete()
    assert finish_off(operation).note == "The account of who started it is gone."
    assert OperatorAction.objects.get(pk=operation.action_id).actor_name == boss.username


def test_an_operation_stays_within_the_tenants_its_author_sees_now(here: Connection) -> None:
    user = user_with(*ALL, tenants=["acme", "beta"])
    ids = {slug: many(2, tenant=slug, group="g") for slug in ("acme", "beta", "gamma")}
    operation = operations.submit(user, "cancel", "group:g due:today..+2d", "why")
    assert operation.expected == 4
    TenantMember.objects.filter(user=user, tenant__slug="beta").delete()
    operation = finish_off(operation)
    assert operation.changed == 2
    assert {slug: states(some) for slug, some in ids.items()} == {
        "acme": {"cancelled"}, "beta": {"scheduled"}, "gamma": {"scheduled"},
    }  # fmt: skip
    assert not visible(user_with(*ALL, tenants=["acme"])).exists()
    assert visible(user_with(*ALL)).exists()


@pytest.mark.parametrize("act", ["pause", "resume", "stop", "undo"])
def test_without_the_permission_nothing_can_be_done_to_it_and_that_is_recorded(
    boss: User, here: Connection, act: str
) -> None:
    many(1, group="g")
    operation = operations.submit(boss, "cancel", "group:g due:today..+2d", "why")
    with pytest.raises(operator.Denied, match=r"jobs\.cancel_job"):
        getattr(operations, act)(user_with("retry_job", "bulk_job"), operation.pk, "x")
    assert OperatorAction.objects.filter(verb=f"{act} operation", result="denied").count() == 1


def test_it_is_undone_once_and_only_when_it_rests(boss: User, here: Connection) -> None:
    many(600, group="g")
    operation = operations.submit(boss, "cancel", "group:g due:today..+2d", "why")
    with pytest.raises(OperationRefused, match="still at work"):
        operations.undo(boss, operation.pk, "x")
    operation = finish_off(operation)
    back = finish_off(operations.undo(boss, operation.pk, "x"))
    assert (back.changed, back.chunks) == (600, 2)
    with pytest.raises(OperationRefused, match="undone already"):
        operations.undo(boss, operation.pk, "x")
    with pytest.raises(OperationRefused, match="an undo itself"):
        operations.undo(boss, back.pk, "x")


def test_bk_03_odd_rows_are_told_and_hold_up_no_other(boss: User, here: Connection) -> None:
    """Of a type that nobody knows, with a payload that cannot be read, gone meanwhile, running, and whose key is taken."""
    good = [job_so("failed", here, group="g") for _ in range(3)]
    unknown, unreadable, gone, running = (job_so("failed", here, group="g") for _ in range(4))
    keyed = job_so("failed", here, group="g", unique_key="k")
    holder = schedule(unique_key="k", delay=HOUR)
    here.execute("UPDATE jobs_job SET job_type = 'nobody.knows' WHERE id = %s", [unknown.pk])
    here.execute("UPDATE jobs_job SET payload = '[1]' WHERE id = %s", [unreadable.pk])
    operation = operations.submit(boss, "retry", "group:g state:failed", "mended")
    here.execute("DELETE FROM jobs_outcome WHERE job_id = %s", [gone.pk])
    here.execute("DELETE FROM jobs_job WHERE id = %s", [gone.pk])
    Job.objects.filter(pk=running.pk).retry()
    operation = finish_off(operation)
    assert operation.state == "done"
    assert states([job.pk for job in (*good, unreadable, unknown)]) == {"queued"}
    assert operation.changed == 5
    assert operation.skipped == {f"unique key held by {holder.pk}": 1}
    assert states([keyed.pk]) == {"failed"}


def test_one_job_that_breaks_the_invariant_holds_up_no_other(boss: User, here: Connection) -> None:
    ids = many(20, group="g")
    Timer.objects.filter(job_id=ids[7]).delete()
    operation = operations.submit(boss, "cancel", "group:g due:today..+2d", "why")
    QueueEntry.objects.all().delete()
    here.execute(
        "INSERT INTO jobs_timer SELECT id, due_at, tenant_id, queue, job_type, priority, max_attempts FROM jobs_job WHERE false"
    )
    operation = finish_off(operation)
    assert (operation.state, operation.changed) == ("done", 19)


def test_an_error_of_the_code_pauses_that_operation_and_the_others_go_on(
    boss: User, here: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(1, group="g")
    broken = operations.submit(boss, "cancel", "group:g due:today..+2d", "why")

    def fail(*args: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(run, "apply", fail)
    assert Operations().run_once(here, clock.now()) == 1
    broken.refresh_from_db()
    assert (broken.state, broken.note) == ("paused", "RuntimeError: a bug")
    assert Operations().run_once(here, clock.now()) == 0


def test_while_nothing_is_due_djangos_connection_is_left_alone(
    here: Connection, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        assert Operations().run_once(here, clock.now()) == 0


@pytest.mark.parametrize("state", OPEN)
def test_an_operation_is_found_in_each_open_state(
    boss: User, here: Connection, state: OperationState
) -> None:
    many(1, group="g")
    operation = operations.submit(boss, "cancel", "group:g due:today..+2d", "why")
    Operation.objects.filter(pk=operation.pk).update(state=state)
    assert Operations().run_once(here, clock.now()) == 1


def test_the_steps_of_the_ceiling() -> None:
    assert [limits.ceiling_of(user_with(*some)) for some in ((), ("bulk_job",), ("bulk_job", "bulk_many"), ("bulk_any",))] == [
        0, 1_000, 100_000, 2_000_000_000,
    ]  # fmt: skip
