"""Commands of operators: each does what the verb does and leaves one record."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, LiteralString
from uuid import UUID

import psycopg
import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction
from django.test import RequestFactory

from dispatch.janitor import Janitor
from jobs import operator
from jobs.clock import DatabaseClock
from jobs.console.origin import person
from jobs.errors import InvalidJob, PlaceUnknown
from jobs.ids import new_id
from jobs.models import OperatorAction, Outcome, QueueEntry, Timer
from jobs.states import JobState
from tests.db.test_admin_tools import audit, user_with
from tests.factories import Connection, job_in, schedule

pytestmark = pytest.mark.django_db


def test_the_record_says_who_what_why_and_how_many(connection: Connection) -> None:
    user = user_with("retry_job")
    jobs = [job_in(state, connection) for state in (JobState.FAILED, JobState.COMPLETED, JobState.RUNNING)]
    gone = new_id(jobs[0].due_at)
    action, report = operator.act(user, "retry", [*(job.pk for job in jobs), gone], " it is mended ")
    assert report.describe("retried") == "1 retried, 3 skipped (1 completed, 1 not ended, 1 not found)"
    stored = OperatorAction.objects.get()
    assert stored == action
    assert (stored.actor, stored.actor_name, stored.verb) == (user, user.username, "retry")
    assert (stored.matched, stored.changed, stored.reason) == (4, 1, "it is mended")
    assert stored.skipped == {"completed": 1, "not ended": 1, "not found": 1}
    assert stored.target["jobs"] == sorted(str(job_id) for job_id in [*(job.pk for job in jobs), gone])


def test_what_was_changed_names_the_record(connection: Connection) -> None:
    user = user_with("retry_job", "cancel_job")
    failed, waiting = job_in(JobState.FAILED, connection), job_in(JobState.SCHEDULED, connection)
    retried, _ = operator.act(user, "retry", [failed.pk])
    cancelled, _ = operator.act(user, "cancel", [waiting.pk])
    assert QueueEntry.objects.get(job_id=failed.pk).action_id == retried.pk
    assert Outcome.objects.get(job_id=waiting.pk).action_id == cancelled.pk


def test_running_jobs_are_asked_to_stop_and_the_record_says_so(connection: Connection) -> None:
    job = job_in(JobState.RUNNING, connection)
    action, report = operator.act(user_with("cancel_job"), "cancel", [job.pk])
    assert report.describe("cancelled") == "0 cancelled, 1 running asked to stop"
    assert action.requested == 1


def test_a_denied_attempt_changes_nothing_and_is_recorded() -> None:
    job = schedule(delay=timedelta(hours=1))
    with pytest.raises(operator.Denied, match=r"jobs\.cancel_job"):
        operator.act(user_with("retry_job"), "cancel", [job.pk], "please")
    stored = OperatorAction.objects.get()
    assert (stored.changed, stored.skipped, stored.reason) == (0, {"denied": 1}, "please")
    assert job.state == JobState.SCHEDULED


def test_somebody_unknown_is_denied_and_recorded() -> None:
    job = schedule()
    with pytest.raises(operator.Denied):
        operator.act(AnonymousUser(), "cancel", [job.pk])
    assert OperatorAction.objects.get().actor is None


def test_change_and_record_share_their_transaction() -> None:
    job = schedule(delay=timedelta(hours=1))
    user = user_with("cancel_job")
    with transaction.atomic():
        operator.act(user, "cancel", [job.pk])
        transaction.set_rollback(True)
    assert audit() == []
    assert Timer.objects.filter(job_id=job.pk).exists()


def test_a_command_that_breaks_changes_nothing_and_is_recorded() -> None:
    whole, broken = schedule(delay=timedelta(hours=1)), schedule(delay=timedelta(hours=1))
    Timer.objects.filter(job_id=broken.pk).delete()
    with pytest.raises(PlaceUnknown):
        operator.act(user_with("cancel_job"), "cancel", [whole.pk, broken.pk])
    assert OperatorAction.objects.get().skipped == {"error: PlaceUnknown": 2}
    assert Timer.objects.filter(job_id=whole.pk).exists()


@pytest.mark.parametrize("number", [0, operator.LIMIT + 1])
def test_a_command_takes_one_to_a_hundred_jobs(number: int) -> None:
    ids = [UUID(int=n) for n in range(number)]
    with pytest.raises(ValueError, match="1 to 100 jobs"):
        operator.act(user_with("cancel_job"), "cancel", ids)
    assert audit() == []


def test_passwords_in_a_reason_are_not_kept() -> None:
    operator.act(user_with("cancel_job"), "cancel", [schedule().pk], "see postgres://u:hunter2@h/d")
    assert OperatorAction.objects.get().reason == "see postgres://u:***@h/d"


def test_a_reason_of_any_text_is_kept() -> None:
    operator.act(user_with("cancel_job"), "cancel", [schedule().pk], "\0\ud800" + "é" * 600)
    assert OperatorAction.objects.get().reason.startswith("\\x00\\ud800é")


def test_a_record_is_never_written_over() -> None:
    action, _ = operator.act(user_with("cancel_job"), "cancel", [schedule().pk])
    with pytest.raises(IntegrityError):
        operator.record(AnonymousUser(), "cancel", {}, pk=action.pk)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs_operatoraction SET reason = 'another'",
        "UPDATE jobs_operatoraction SET actor_id = NULL",
        "DELETE FROM jobs_operatoraction",
    ],
)
def test_the_database_keeps_the_audit_as_it_is(here: Connection, statement: LiteralString) -> None:
    action, _ = operator.act(user_with("cancel_job"), "cancel", [schedule().pk], "because")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"), here.transaction():
        here.execute(statement)
    action.refresh_from_db()
    assert action.reason == "because"


def test_an_account_can_be_deleted_and_its_deeds_stay() -> None:
    user = user_with("cancel_job")
    operator.act(user, "cancel", [schedule().pk])
    name = user.username
    user.delete()
    assert OperatorAction.objects.get().actor_name == name


def test_the_audit_is_pruned_after_more_than_a_year(here: Connection) -> None:
    operator.act(user_with("cancel_job"), "cancel", [schedule().pk])
    Janitor().run_once(here, DatabaseClock().read(here))
    assert OperatorAction.objects.count() == 1
    old = OperatorAction.objects.get()
    OperatorAction.objects.create(verb="cancel", actor_name="x", at=old.at - timedelta(days=401))
    Janitor().run_once(here, DatabaseClock().read(here))
    assert OperatorAction.objects.get() == old


def test_it_says_through_what_and_from_where(rf: RequestFactory) -> None:
    request = rf.get("/", REMOTE_ADDR="2001:db8::1")
    request.user = user_with("cancel_job")
    action, _ = operator.act(person(request), "cancel", [schedule().pk])
    assert (action.via, action.address) == ("console", "2001:db8::1")
    request = rf.get("/", REMOTE_ADDR="unix:")
    request.user = user_with("cancel_job")
    assert operator.act(person(request), "cancel", [schedule().pk])[0].address is None


@pytest.mark.parametrize(
    ("verb", "given"), [("move", {}), ("cancel", {"queue": "x"}), ("reschedule", {"priority": 1})]
)
def test_arguments_that_a_verb_does_not_take_are_refused(verb: str, given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="takes"):
        operator.act(user_with(f"{verb}_job"), verb, [schedule().pk], **given)
    assert audit() == []


def test_a_priority_or_queue_that_cannot_be_is_refused_and_recorded() -> None:
    job = schedule(delay=timedelta(hours=1))
    with pytest.raises(InvalidJob, match="from -100 to 100"):
        operator.act(user_with("prioritize_job"), "prioritize", [job.pk], priority=1000)
    assert list(OperatorAction.objects.values_list("result", flat=True)) == ["failed"]


@pytest.mark.parametrize("queue", ["", "x" * 101, " q", "q\n", "a\0b", "\ud835"])
def test_pl_04_a_job_is_moved_to_no_queue_that_schedule_would_refuse(queue: str) -> None:
    job = schedule(delay=timedelta(hours=1))
    with pytest.raises(InvalidJob, match="queue"):
        operator.act(user_with("move_job"), "move", [job.pk], queue=queue)
    assert list(OperatorAction.objects.values_list("result", flat=True)) == ["failed"]


def test_a_job_of_a_tenant_that_is_not_seen_is_not_found() -> None:
    mine, foreign = schedule(tenant="acme"), schedule(tenant="beta")
    _, report = operator.act(user_with("cancel_job", tenants=["acme"]), "cancel", [mine.pk, foreign.pk])
    assert report.describe("cancelled") == "1 cancelled, 1 skipped (1 not found)"
    assert foreign.state == JobState.QUEUED
