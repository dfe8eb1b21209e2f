"""`manage.py jobs`: each verb with its audit, its JSON, its exit status and its refusals."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from jobs import clock, holds, operations
from jobs.models import Hold, OperatorAction, Queue, Tenant, Triage
from jobs.operator import Shell
from tests.db.test_admin_tools import user_with
from tests.factories import schedule

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def run(*words: str) -> tuple[str, str]:
    """Standard output and standard error; CommandError when it exits with 1."""
    out, errors = StringIO(), StringIO()
    call_command("jobs", *words, stdout=out, stderr=errors, no_color=True)
    return out.getvalue().strip(), errors.getvalue().strip()


def asked(*words: str) -> Any:
    return json.loads(run(*words, "--json")[0])


def test_a_job_is_cancelled_and_retried_and_recorded_by_the_account() -> None:
    job = schedule()
    assert run("cancel", str(job.id), "--reason", "no more") == ("1 cancelled", "")
    assert str(job.state) == "cancelled"
    action = OperatorAction.objects.get()
    assert (action.verb, action.actor, action.reason) == ("cancel", None, "no more")
    assert action.actor_name == Shell().get_username()
    answer = asked("retry", str(job.id))
    assert answer == {
        "action": OperatorAction.objects.get(verb="retry").pk,
        "changed": 1,
        "requested": 0,
        "skipped": {},
    }
    assert str(job.state) == "queued"


def test_what_changed_nothing_says_so_and_exits_with_1() -> None:
    job, unknown = schedule(), uuid4()
    with pytest.raises(CommandError, match="nothing was changed"):
        run("retry", str(job.id))
    with pytest.raises(CommandError, match="nothing was changed"):
        run("cancel", str(unknown))


def test_more_jobs_than_one_command_takes_are_refused() -> None:
    with pytest.raises(CommandError, match="101 jobs are named; one command takes at most 100"):
        run("cancel", *(str(uuid4()) for _ in range(101)))


def test_everything_is_paused_with_a_reason_and_resumed() -> None:
    assert run("pause", "all", "--reason", "deploy") == ("paused everything", "")
    made = holds.standing().get()
    assert (made.by, made.reason) == (Shell().get_username(), "deploy")
    assert run("resume", "all") == ("resumed everything", "")
    assert not holds.standing().exists()
    assert [(each.verb, each.changed) for each in OperatorAction.objects.all()] == [
        ("resume", 1),
        ("pause", 1),
    ]


def test_a_target_is_paused_for_a_time_and_resumed_at_a_rate() -> None:
    answer = asked("pause", "queue", "q", "--until", "2h")
    assert (answer["scope"], answer["key"]) == ("queue", "q")
    until = Hold.objects.get().until
    assert until
    assert HOUR < until - clock.now() <= 2 * HOUR
    assert asked("resume", "queue", "q", "--rate", "5")["resumed"][0]["drain"] == 5


def test_all_holds_of_a_target_are_lifted_at_once() -> None:
    for _ in range(2):
        run("pause", "group", "g")
    assert len(asked("resume", "group", "g")["resumed"]) == 2
    with pytest.raises(CommandError, match="nothing holds group g"):
        run("resume", "group", "g")


def test_a_type_that_nobody_registered_is_warned_of() -> None:
    assert run("pause", "type", "test.nop") == (
        "paused a job type test.nop", "warning: no type 'test.nop' is registered here",
    )  # fmt: skip
    assert run("pause", "type", "test.noop")[1] == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("cancel", "the following arguments are required: id"),
        ("cancel 5", "'5' is no job id; one looks like"),
        ("pause job x", "invalid choice: 'job'"),
        ("pause queue", "key: names no queue: has 0 characters"),
        ("pause all q", "key: is 'q', but everything has no name"),
        ("pause tenant nobody", "there is no tenant 'nobody'"),
        ("pause queue q --until yesterday", "'yesterday' is no time; write 2026-12-31T18:00Z, or 30m"),
        ("pause queue q --until 2020-01-01T00:00Z", "until: 2020-01-01 00:00:00+00:00 is not in the future"),
        ("pause queue q --until 2099-01-01T00:00", "does not say in which zone"),
        ("limits --tenant nobody", "there is no tenant 'nobody'"),
        ("limits --max-running 5", "tenant: name a tenant, a queue, or both"),
        ("limits --queue q --max-running -1", "max_running: -1 is no whole number from 0 to 1,000,000"),
        ("limits --queue q --max-running 1.5", "max_running: '1.5' is no whole number"),
        ("limits --queue q --max-running many", "max_running: 'many' is no whole number"),
        ("limits --queue q --weight 5", "weight: is nothing that is set of it"),
        ("limits --queue q --rate 5/day", "rate_per: "),
        ("limits --queue q --rate 5/", "rate_per: "),
        ("limits --queue q --rate five", "rate: 'five' is no whole number"),
        ("limits --queue q --noisy-share 2", "noisy_share: "),
        ("limits --queue q --noisy-share half", "noisy_share: 'half' is not a number"),
        ("why 019a8f3c-5e10-7b44-9d2e-0c6a1f2b3d4e", "there is no job 019a8f3c-5e10-7b44-9d2e-0c6a1f2b3d4e"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_and_nothing_is_done(words: str, message: str) -> None:
    with pytest.raises(CommandError) as caught:
        run(*words.split())
    assert message in str(caught.value)
    assert not Hold.objects.exists()
    assert not Queue.objects.exists()


@pytest.mark.parametrize("rate", ["0", "-1", "x", "1.5"])
def test_a_rate_that_is_none_resumes_nothing(rate: str) -> None:
    run("pause", "queue", "q")
    with pytest.raises(CommandError, match=r"rate: .* is no whole number from 1"):
        run("resume", "queue", "q", "--rate", rate)
    assert holds.standing().exists()


def test_limits_are_set_and_shown() -> None:
    Tenant.objects.get_or_create(slug="acme")
    assert run("limits", "--tenant", "acme") == ("tenant acme: weight 1, noisy_exempt False", "")
    assert asked("limits", "--tenant", "acme", "--max-running", "5", "--weight", "3")["max_running"] == 5
    assert asked("limits", "--queue", "q", "--rate", "10/minute", "--burst", "20")["rate_per"] == "minute"
    told = run("limits", "--tenant", "acme", "--queue", "q", "--max-running", "2")
    assert told == (
        f"tenant acme in queue q: max_running 2 (action {OperatorAction.objects.latest('id').pk})",
        "",
    )
    run("pause", "queue", "q", "--reason", "broken")
    shown = asked("limits")
    assert [{name: row[name] for name in ("tenant", "queue") if name in row} for row in shown["limits"]] == [
        *({"tenant": slug} for slug in Tenant.objects.values_list("slug", flat=True)),
        {"queue": "q"},
        {"tenant": "acme", "queue": "q"},
    ]
    assert [(each["scope"], each["reason"]) for each in shown["holds"]] == [("queue", "broken")]
    assert asked("limits", "--queue", "q", "--rate", "none")["burst"] is None
    first = list(OperatorAction.objects.filter(verb="limit"))[-1]
    assert first.target == {"tenant": "acme"}
    assert first.before == {"max_running": None, "weight": 1}
    assert first.after == {"max_running": 5, "weight": 3}


def test_a_limit_of_zero_is_warned_of() -> None:
    out, errors = run("limits", "--queue", "q", "--max-running", "0")
    assert out.startswith("queue q: max_running 0")
    assert errors == "warning: queue q: max running is 0, so none of its jobs starts until that is changed."


def test_operations_are_listed_shown_paused_resumed_and_stopped() -> None:
    boss = user_with("cancel_job", "bulk_job")
    schedule(group="g", delay=HOUR)
    made = operations.submit(boss, "cancel", "group:g due:now..+2h", "recalled")
    line = f"{made.pk} cancel: queued, 0 of 1 changed; by {boss.username}: recalled"
    assert run("operations", "list") == (line, "")
    assert run("operations", "show", str(made.pk))[0].splitlines() == [line, f"  {made.query}"]
    for action, state in (("pause", "paused"), ("resume", "running"), ("stop", "stopped")):
        told = asked("operations", action, str(made.pk), "--reason", "because")
        assert told["operation"]["state"] == state
        record = OperatorAction.objects.get(verb=f"{action} operation")
        assert (record.via, record.reason, record.actor_name) == (
            "command",
            "because",
            Shell().get_username(),
        )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("list", "3"), "list takes no number"),
        (("show",), "show which operation"),
        (("show", "3"), "there is no operation 3"),
        (("stop", "3"), "there is no operation 3"),
        (("stop", "0"), "0 is not"),
        (("rewind", "3"), "invalid choice"),
    ],
)
def test_what_an_operation_cannot_is_refused(words: tuple[str, ...], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        run("operations", *words)


def test_without_operations_the_list_says_none() -> None:
    assert run("operations", "list") == ("none", "")
    assert asked("operations", "list") == {"operations": []}


def test_errors_are_sorted_and_a_deploy_is_marked() -> None:
    answer = asked(
        "triage", "00000000000000aa", "known", "--owner", "maria", "--until", "2h", "--reason", "#12"
    )
    assert answer["state"] == "known"
    row = Triage.objects.get()
    assert (row.owner, row.note, row.by) == ("maria", "#12", Shell().get_username())
    assert row.until
    assert HOUR < row.until - clock.now() <= 2 * HOUR
    assert run("triage", "00000000000000aa", "new") == ("errors 00000000000000aa are new", "")
    assert not Triage.objects.exists()
    with pytest.raises(CommandError, match="1 to 16 characters"):
        run("triage", "x" * 17, "known")
    with pytest.raises(CommandError, match="still to come"):
        run("triage", "x", "known", "--until", "2020-01-01T00:00Z")
    assert asked("deploy", "v1.2.3")["deploy"] == "v1.2.3"
    verbs = list(OperatorAction.objects.order_by("id").values_list("verb", flat=True))
    assert verbs == ["triage", "triage", "deploy"]
