"""Each role at each address; and one tenant's people never hear of another's."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client

from jobs import operations, roles, scope
from jobs.models import CronDefinition, Operation, OperatorAction, SavedView, Tenant, TenantMember
from jobs.states import JobState
from tests.db.test_admin_permissions import addresses, path_of
from tests.db.test_admin_permissions import rows as rows
from tests.db.test_admin_tools import (
    FAILED,
    JOBS,
    client_of,
    command,
    naming,
    operator_with,
    page_of,
    user_with,
)
from tests.factories import Connection, job_in, schedule

pytestmark = pytest.mark.django_db

POSTED_ONLY = {
    "jobs_job_command", "jobs_job_save_view", "jobs_job_forget_view", "jobs_operation_command",
    "jobs_crondefinition_command", "jobs_job_export", "jobs_operatoraction_export",
    "jobs_job_bundle",
}  # fmt: skip
LOGIN_ONLY = {"jobs_job_me"}


def member_of(role: str, tenants: list[Tenant]) -> Client:
    roles.make()
    user = User.objects.create_user(role, is_staff=True)
    user.groups.add(Group.objects.get(name=roles.name_of(role)))
    if role == "support":
        for tenant in tenants:
            TenantMember.objects.create(user=user, tenant=tenant)
    return client_of(user)


def needed(model: str, name: str) -> set[str]:
    """Permissions without which the address is closed, whatever the method."""
    special = {
        "jobs_operation_new": {"view_operation", "bulk_job", "retry_job"},
        "jobs_hold_lift": {"change_hold"},
        "jobs_operatoraction_undo": {"change_tenant"},
        "jobs_hold_delete": {"nobody"},  # it is lifted
        "jobs_job_triage": {"view_job", "triage_error"},
        "jobs_process_workers": {"view_process"},
        "jobs_process_dispatchers": {"view_process"},
    }
    if name in special:
        return special[name]
    for verb in ("add", "delete"):
        if name == f"jobs_{model}_{verb}":
            return {f"{verb}_{model}"}
    return {f"view_{model}"}


@pytest.mark.parametrize("role", roles.ROLES)
def test_a_role_opens_exactly_what_its_permissions_open(rows: dict[str, Any], role: str) -> None:
    client = member_of(role, list(Tenant.objects.all()))
    has = set(roles.ROLES[role])
    wrong = []
    for model, name, wanted in addresses():
        response = client.get(path_of(model, name, wanted, rows))
        if name in POSTED_ONLY:
            expected = {405, 403}
        elif name in LOGIN_ONLY or needed(model, name) <= has:
            expected = {200, 302}
        else:
            expected = {403, 405, 302} if name.endswith("_history") else {403, 405}
        if response.status_code == 403 and "every_tenant" not in has and needed(model, name) <= has:
            continue  # what mixes tenants
        if response.status_code not in expected:
            wrong.append((name, response.status_code, expected))
    assert wrong == []


WRITES = {
    "retry": "retry_job", "cancel": "cancel_job", "reschedule": "reschedule_job", "prioritize": "prioritize_job",
    "move": "move_job", "reveal": "reveal_payload",
}  # fmt: skip


@pytest.mark.parametrize("role", roles.ROLES)
@pytest.mark.parametrize("verb", WRITES)
def test_a_role_may_give_exactly_its_commands(role: str, verb: str) -> None:
    job = schedule()
    client = member_of(role, [job.tenant])
    response = client.post(command(verb), naming(job))
    allowed = WRITES[verb] in roles.ROLES[role]
    assert response.status_code == (200 if allowed else 403)
    denied = OperatorAction.objects.filter(verb=verb, result="denied")
    assert denied.exists() != allowed


@pytest.mark.parametrize("role", roles.ROLES)
@pytest.mark.parametrize("verb", ["retry", "cancel", "reschedule", "prioritize", "move"])
def test_a_role_may_start_exactly_its_operations(role: str, verb: str) -> None:
    job = schedule()
    client = member_of(role, [job.tenant])
    response = client.post(f"/admin/jobs/operation/new/{verb}/", {"q": "state:queued,failed"})
    allowed = {WRITES[verb], "bulk_job"} <= set(roles.ROLES[role])
    assert response.status_code == (200 if allowed else 403)
    assert OperatorAction.objects.filter(verb=f"{verb} all", result="denied").exists() != allowed


def test_every_permission_of_a_role_exists() -> None:
    assert roles.unknown() == []


def test_making_roles_again_takes_nothing_away() -> None:
    roles.make()
    group = Group.objects.get(name=roles.name_of("viewer"))
    extra = Group.objects.get(name=roles.name_of("lead")).permissions.get(codename="reveal_payload")
    group.permissions.add(extra)
    assert roles.make() == {role: [] for role in roles.ROLES}
    assert group.permissions.filter(pk=extra.pk).exists()


def test_the_command_puts_a_user_into_a_role_and_their_tenants() -> None:
    user = User.objects.create_user("sam", is_staff=True)
    for slug in ("acme", "beta", "gamma"):
        Tenant.objects.get_or_create(slug=slug)
    call_command("jobs_roles", user="sam", role="support", tenants=("acme", "beta"))
    assert scope.slugs_of(User.objects.get(pk=user.pk)) == ["acme", "beta"]
    call_command("jobs_roles", user="sam", tenants=("gamma",))
    assert scope.slugs_of(User.objects.get(pk=user.pk)) == ["gamma"]
    assert User.objects.get(pk=user.pk).groups.get().name == "Jobs: support"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"user": "nobody", "role": "viewer"}, "there is no user 'nobody'"),
        ({"user": "sam", "tenants": ("x",)}, "there is no tenant x"),
        ({"role": "viewer"}, "name one with --user"),
        ({"user": "sam"}, "needs --role"),
    ],
)
def test_the_command_says_what_is_wrong_and_does_nothing(given: dict[str, Any], told: str) -> None:
    User.objects.create_user("sam")
    with pytest.raises(CommandError, match=told):
        call_command("jobs_roles", **given)
    assert not Group.objects.exists()


SECRET = "zebra"


@pytest.fixture
def foreign(connection: Connection) -> list[Any]:
    """One job in every state, and whatever else names a tenant, of a tenant called zebra."""
    jobs = [
        job_in(
            state,
            connection,
            tenant=SECRET,
            group=f"{SECRET}-group",
            queue=f"{SECRET}-{state}",
            unique_key=f"{SECRET}-{state}",
        )
        for state in JobState
    ]
    tenant = jobs[0].tenant
    CronDefinition.objects.create(
        name=f"{SECRET}-cron",
        tenant=tenant,
        expression="0 1 * * *",
        job_type="test.noop",
        payload={"x": SECRET},
    )
    boss = user_with("retry_job", "bulk_job")
    operations.submit(boss, "retry", f"tenant:{SECRET} state:failed", f"for {SECRET}")
    SavedView.objects.create(name=f"{SECRET}-view", query=f"tenant:{SECRET}", owner=boss)
    return jobs


def test_nothing_of_another_tenant_is_on_any_page(foreign: list[Any], rows: dict[str, Any]) -> None:
    """All pages, also with every permission but the one to see every tenant."""
    everything = [
        f"{verb}_{model._meta.model_name}"
        for model in admin.site._registry
        if model._meta.app_label == "jobs"
        for verb in ("view", "add", "change", "delete")
    ]
    verbs = [*WRITES.values(), "bulk_job", "bulk_any", "share_view"]
    mine = schedule(tenant="acme")
    client = operator_with(*everything, *verbs, tenants=["acme"])
    pages = [
        "/admin/",
        "/admin/jobs/",
        JOBS,
        FAILED,
        page_of(mine),
        "/admin/jobs/tenant/",
        "/admin/jobs/operation/",
    ]
    pages += [path_of(model, name, wanted, rows) for model, name, wanted in addresses()]
    lines = [
        "",
        "due:-2d..+2d",
        "-tenant:acme",
        f"group:{SECRET}-group",
        "state:failed,cancelled,running",
        "is:overdue",
        "-state:queued",
    ]
    for state in JobState:
        lines += [f"state:{state}", f"key:{SECRET}-{state}"]
    found = 0
    for url, asked in [*((page, {}) for page in pages), *((JOBS, {"q": line}) for line in lines)]:
        response = client.get(url, asked, follow=True)
        if response.status_code != 200:
            assert response.status_code in (403, 404, 405)
            continue
        found += 1
        text = response.text
        for word in re.findall(rf"{SECRET}-\w+", asked.get("q", "")):  # what was typed comes back
            text = text.replace(word, "")
        assert SECRET not in text, (url, asked)
        assert not any(str(job.pk) in text for job in foreign), (url, asked)
    assert found > 30


def test_a_foreign_job_is_not_there_for_any_verb(foreign: list[Any]) -> None:
    client = operator_with(
        "view_job", "view_operation", *WRITES.values(), "bulk_any", "bulk_job", tenants=["acme"]
    )
    before = [(job.pk, job.state) for job in foreign]
    for job in foreign:
        response = client.get(page_of(job), follow=True)
        assert "There is no job" in response.text
        for verb in WRITES:
            more = {
                "confirmed": "1",
                "reason": "x",
                "run_at": "2026-11-30T00:00",
                "priority": "5",
                "queue": "q",
            }
            response = client.post(command(verb), naming(job, **more), follow=True)
            assert str(job.state) != "x"
            assert f"{SECRET}-" not in response.text
    assert [(job.pk, job.state) for job in foreign] == before
    assert not OperatorAction.objects.filter(
        changed__gt=0, actor_name__startswith="operator", verb__in=WRITES
    ).exists()


def test_a_foreign_operation_can_be_neither_seen_nor_stopped(foreign: list[Any]) -> None:
    operation = Operation.objects.get()
    client = operator_with("view_job", "view_operation", "retry_job", "bulk_job", tenants=["acme"])
    assert client.get(f"/admin/jobs/operation/{operation.pk}/change/").status_code == 404
    client.post(f"/admin/jobs/operation/{operation.pk}/command/stop/", {"reason": "x"})
    operation.refresh_from_db()
    assert operation.state == "queued"


def test_a_foreign_tenant_is_as_unknown_as_none() -> None:
    schedule(tenant=SECRET)
    client = operator_with("view_job", tenants=["acme"])
    texts = [
        client.get(JOBS, {"q": f"tenant:{name}"}).context["cl"].form.problem for name in (SECRET, "nobody")
    ]
    assert texts[0].message.replace(SECRET, "nobody") == texts[1].message
    assert texts[0].hint == texts[1].hint == ""


def test_who_is_a_member_of_nothing_sees_nothing(foreign: list[Any]) -> None:
    client = operator_with("view_job", "view_tenant", tenants=[])
    assert client.get(JOBS, {"q": "due:-2d..+2d"}).context["cl"].result_list == []
    assert SECRET not in client.get("/admin/jobs/tenant/").text
