"""The ten journeys of an operator, each in the clicks that it may take, in both themes, on a desk and on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.console import remember
from jobs.models import CronDefinition, Hold, Job, Operation, OperatorAction, Tenant
from jobs.states import JobState
from tests.browser.conftest import Visit
from tests.browser.world import World, build
from tests.factories import Connection

pytestmark = pytest.mark.browser


@pytest.fixture
def world(connection: Connection, maria: User) -> Iterator[World]:
    remember.forget()
    yield build(connection, maria)
    remember.forget()


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name).first.click()


def follow(place: Any, name: str | re.Pattern[str]) -> None:
    link = place.get_by_role("link", name=name).first
    with link.page.expect_navigation():
        link.click()


def search(page: Any, line: str) -> None:
    page.locator("#console-q").fill(line)
    page.locator("#console-q").press("Enter")


def content(page: Any) -> str:
    text: str = page.locator("#content").inner_text()
    return text


def test_1_is_everything_on_time(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/")
    page.locator("a.section", has_text="Job scheduler").first.click()
    verdict = page.locator(".verdict").inner_text()
    assert "to look at" in verdict or "Not everything is on time." in verdict
    assert re.search(r"% started on time in the last 5 minutes", verdict)
    problems = page.locator(".problems li").all_inner_texts()
    assert any("Tenant umbrella may run no job" in problem for problem in problems)
    assert any("jobs failed in the last hour, in 3 ways" in problem for problem in problems)
    assert page.locator(".chart svg").count() == 3
    visit.check(axe)


def test_2_why_has_this_job_not_run(visit: Visit, world: World, axe: str) -> None:
    Tenant.objects.filter(slug="acme").update(max_running=0)
    page = visit.go("/admin/jobs/crondefinition/")
    search(page, str(world.by_state["queued"].pk))
    page.wait_for_url(f"**/{world.by_state['queued'].pk}/change/")
    why = page.locator(".why")
    assert "Tenant acme is at its limit: 0 of 0" in why.inner_text()
    visit.check(axe)


def test_3_a_tenant_complains_of_lateness(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/jobs/")
    search(page, "tenant:acme")
    page.locator("#result_list").get_by_role("link", name="acme", exact=True).first.click()
    page.wait_for_url("**/tenant/*/change/")
    shown = content(page)
    assert "Lateness, 95 %" in shown
    assert "all tenants" in shown
    page.locator("#id_temporary_max_running").fill("60")
    page.locator("#id_temporary_until_0").fill("2030-01-01")
    page.locator("#id_temporary_until_1").fill("12:00:00")
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator(".messagelist").wait_for()
    assert Tenant.objects.get(slug="acme").temporary_max_running == 60
    visit.check(axe)


def test_4_a_deploy_broke_a_type(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/jobs/")
    page.locator(".problem", has_text="jobs failed").get_by_role("link").click()
    group = page.locator(".error-group", has_text="gateway said")
    assert "7 times" in group.inner_text()
    visit.check(axe)
    group.get_by_role("link", name="Retry all 7").click()
    assert "7 jobs fit" in content(page)
    visit.check(axe)
    page.get_by_label("Reason").fill("the gateway is back")
    page.locator("input[type=submit].default").click()
    page.wait_for_url("**/operation/*/change/")
    visit.check(axe)
    assert Operation.objects.get().reason == "the gateway is back"


def test_5_cancel_everything_of_a_group(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/jobs/")
    search(page, f"group:{world.group} state:scheduled,retryable due:-1d..+2d")
    follow(page, re.compile("Cancel all"))
    assert "jobs fit" in content(page)
    page.get_by_label("Reason").fill("recalled")
    page.locator("input[type=submit].default").click()
    page.wait_for_url("**/operation/*/change/")
    assert Operation.objects.get().verb == "cancel"
    visit.check(axe)


def test_6_pause_a_queue_and_resume_it(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/jobs/queue/one/?name=test.echo")
    follow(page, "Hold this queue")
    page.get_by_label("Reason").fill("gateway is down")
    visit.check(axe)
    page.get_by_role("button", name="Save", exact=True).click()
    strip = page.locator(".console-holds")
    strip.wait_for()
    assert "Queue test.echo held by maria" in strip.inner_text()
    assert "gateway is down" in visit.go("/admin/jobs/job/").locator(".console-holds").inner_text()
    follow(page, re.compile("Resume"))
    visit.check(axe)
    follow(page.locator("#content"), re.compile("Resume"))
    page.get_by_label("Starts a second").fill("50")
    visit.check(axe)
    page.locator("input[type=submit].default").click()
    page.get_by_text("is no longer held").wait_for()
    assert page.locator(".console-holds").count() == 0
    hold = Hold.objects.get()
    assert (hold.drain, hold.by) == (50, "maria")
    assert list(OperatorAction.objects.order_by("-id").values_list("verb", flat=True)[:2]) == [
        "resume",
        "pause",
    ]


def test_7_change_the_limit_of_a_tenant(visit: Visit, world: World, axe: str) -> None:
    acme = Tenant.objects.get(slug="acme")
    page = visit.go(f"/admin/jobs/tenant/{acme.pk}/change/")
    page.locator("#id_max_running").fill("40")
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator(".messagelist").wait_for()
    acme.refresh_from_db()
    assert acme.max_running == 40
    action = OperatorAction.objects.latest("id")
    assert action.actor_name == "maria"
    visit.check(axe)


def test_8_what_fires_in_the_next_hour(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/jobs/")
    page.locator(".console-sections").get_by_role("link", name="Forecast").click()
    assert re.search(r"\d+ jobs come due in the next hour, \d+ of them by cron", content(page))
    assert page.locator(".chart rect").count() > 20
    assert "heartbeat" in content(page)
    page.locator(".chart-numbers summary").click()
    assert page.locator("table.numbers tbody tr").count() == 60
    visit.check(axe)


def test_9_add_a_cron_definition_across_a_change_of_the_clocks(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/jobs/crondefinition/")
    with page.expect_navigation():
        page.locator(".object-tools a.addlink").click()
    page.locator("#id_name").fill("early bird")
    page.locator("#id_expression").fill("30 2 * * *")
    page.locator("#id_timezone").fill("Europe/Berlin")
    preview = page.locator("[data-preview]")
    preview.get_by_text("goes forward from 02:00 to 03:00").wait_for()
    assert "At 02:30" in preview.inner_text()
    assert preview.get_by_role("table", name="The next fires").locator("tbody tr").count() == 10
    assert re.search(r"does not exist", preview.inner_text())
    assert re.search(r"comes twice", preview.inner_text())
    visit.check(axe)
    page.locator("#id_expression").fill("61 2 * * *")
    preview.locator(".errornote").wait_for()
    page.locator("#id_expression").fill("30 2 * * *")
    page.locator("#id_job_type").fill("test.noop")
    page.evaluate(
        "value => { const field = document.querySelector('#id_tenant');"
        " field.append(new Option('acme', value, true, true)); field.value = value; }",
        str(Tenant.objects.get(slug="acme").pk),
    )
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator(".messagelist").wait_for()
    made = CronDefinition.objects.get(name="early bird")
    assert (made.expression, made.timezone) == ("30 2 * * *", "Europe/Berlin")


def test_10_who_cancelled_this_job(visit: Visit, world: World, axe: str) -> None:
    page = visit.go(f"/admin/jobs/job/{world.cancelled.pk}/change/")
    line = page.locator(".event-person", has_text="Cancel by maria")
    assert "the mailing was recalled" in line.inner_text()
    line.get_by_role("link", name="audit").click()
    page.wait_for_url("**/operatoraction/*/change/")
    assert "maria" in content(page)
    visit.check(axe)


def test_a_job_is_retried_from_its_page(desk: Visit, world: World, axe: str) -> None:
    failed = world.by_state["failed"]
    page = desk.go(f"/admin/jobs/job/{failed.pk}/change/")
    press(page, "Retry")
    page.get_by_label("Reason").fill("fixed")
    desk.check(axe)
    page.locator("input[type=submit].default").click()
    page.locator(".messagelist").wait_for()
    assert Job.objects.get(pk=failed.pk).state in (JobState.QUEUED, JobState.SCHEDULED)
