"""The ten journeys of an operator, each in the clicks that it may take, on a desk and on a phone, in both themes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from jobs.console import remember
from jobs.models import CronDefinition, Hold, Job, Operation, OperatorAction, Tenant
from jobs.states import JobState
from tests.browser.visit import Visit
from tests.browser.world import World, build
from tests.factories import Connection

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shop")]


@pytest.fixture
def world(connection: Connection, maria: User) -> Iterator[World]:
    remember.forget()
    yield build(connection, maria)
    remember.forget()


def test_1_is_everything_on_time(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/")
    visit.click(page.locator("a.section", has_text="Job scheduler").first)
    verdict = page.locator(".verdict").inner_text()
    assert "to look at" in verdict or "Not everything is on time." in verdict
    assert re.search(r"% started on time in the last 5 minutes", verdict)
    problems = page.locator(".problems li").all_inner_texts()
    assert any("Tenant umbrella may run no job" in problem for problem in problems)
    assert any("jobs failed in the last hour, in 3 ways" in problem for problem in problems)
    assert page.locator(".chart svg").count() == 3
    assert visit.clicks == 1
    visit.check(axe)


def test_2_why_has_this_job_not_run(visit: Visit, world: World, axe: str) -> None:
    Tenant.objects.filter(slug="acme").update(max_running=0)
    page = visit.go("/admin/jobs/crondefinition/")
    visit.search(str(world.by_state["queued"].pk))
    assert "Tenant acme is at its limit: 0 of 0" in page.locator(".why").inner_text()
    assert visit.clicks == 1
    visit.check(axe)


def test_3_a_tenant_complains_of_lateness(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/jobs/")
    visit.search("tenant:acme")
    visit.click(page.locator("#result_list").get_by_role("link", name="acme", exact=True).first)
    shown = visit.content()
    assert "Lateness, 95 %" in shown
    assert "all tenants" in shown
    page.locator("#id_temporary_max_running").fill("60")
    page.locator("#id_temporary_until_0").fill("2030-01-01")
    page.locator("#id_temporary_until_1").fill("12:00:00")
    visit.press(re.compile("^Save$"))
    assert Tenant.objects.get(slug="acme").temporary_max_running == 60
    assert visit.clicks == 3
    visit.check(axe)


def test_4_a_deploy_broke_a_type(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/jobs/")
    visit.click(page.locator(".problem", has_text="jobs failed").get_by_role("link"))
    group = page.locator(".error-group", has_text="gateway said")
    assert "7 times" in group.inner_text()
    visit.check(axe)
    visit.follow("Retry all 7", group)
    assert "7 jobs fit" in visit.content()
    visit.check(axe)
    page.get_by_label("Reason").fill("the gateway is back")
    visit.save()
    assert Operation.objects.get().reason == "the gateway is back"
    assert visit.clicks == 3
    assert "the gateway is back" in visit.content()
    visit.check(axe)


def test_5_cancel_everything_of_a_group(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/jobs/")
    visit.search(f"group:{world.group} state:scheduled,retryable due:-1d..+2d")
    visit.follow(re.compile("Cancel all"))
    assert "jobs fit" in visit.content()
    page.get_by_label("Reason").fill("recalled")
    visit.save()
    assert Operation.objects.get().verb == "cancel"
    assert visit.clicks == 3
    visit.check(axe)


def test_6_pause_a_queue_and_resume_it(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/jobs/queue/one/?name=reports")
    visit.follow("Hold this queue")
    page.get_by_label("Reason").fill("gateway is down")
    visit.check(axe)
    visit.press(re.compile("^Save$"))
    assert visit.clicks == 2
    assert "Queue reports held by maria" in page.locator(".console-holds").inner_text()
    assert "gateway is down" in visit.go("/admin/jobs/job/").locator(".console-holds").inner_text()
    visit.follow(re.compile("Resume"))
    visit.check(axe)
    visit.follow(re.compile("Resume"), page.locator("#content"))
    page.get_by_label("Starts a second").fill("50")
    visit.check(axe)
    visit.save()
    assert visit.clicks == 5
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
    visit.press(re.compile("^Save$"))
    assert visit.clicks == 1
    acme.refresh_from_db()
    assert acme.max_running == 40
    action = OperatorAction.objects.latest("id")
    assert action.actor_name == "maria"
    visit.check(axe)


def test_8_what_fires_in_the_next_hour(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/jobs/")
    visit.follow("Forecast", page.locator(".console-sections"))
    assert re.search(r"\d+ jobs come due in the next hour, \d+ of them by cron", visit.content())
    assert page.locator(".chart rect").count() > 20
    assert "heartbeat" in visit.content()
    page.locator(".chart-numbers summary").click()
    assert page.locator("table.numbers tbody tr").count() == 60
    visit.check(axe)
    visit.click(page.locator(".chart svg a").last)
    assert visit.clicks == 2
    assert page.locator("#result_list tbody tr").count() > 0


def test_9_add_a_cron_definition_across_a_change_of_the_clocks(visit: Visit, world: World, axe: str) -> None:
    page = visit.go("/admin/jobs/crondefinition/")
    visit.click(page.locator(".object-tools a.addlink"))
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
    page.locator("#id_job_type").fill("mail.send")
    page.evaluate(
        "value => { const field = document.querySelector('#id_tenant');"
        " field.append(new Option('acme', value, true, true)); field.value = value; }",
        str(Tenant.objects.get(slug="acme").pk),
    )
    visit.press(re.compile("^Save$"))
    assert visit.clicks == 2
    made = CronDefinition.objects.get(name="early bird")
    assert (made.expression, made.timezone) == ("30 2 * * *", "Europe/Berlin")


def test_10_who_cancelled_this_job(visit: Visit, world: World, axe: str) -> None:
    page = visit.go(f"/admin/jobs/job/{world.cancelled.pk}/change/")
    line = page.locator(".event-person", has_text="Cancel by maria")
    assert "the mailing was recalled" in line.inner_text()
    visit.follow("audit", line)
    assert "maria" in visit.content()
    assert visit.clicks == 1
    visit.check(axe)


def test_a_job_is_retried_from_its_page(desk: Visit, world: World, axe: str) -> None:
    failed = world.by_state["failed"]
    page = desk.go(f"/admin/jobs/job/{failed.pk}/change/")
    desk.press(re.compile("^Retry"))
    page.get_by_label("Reason").fill("fixed")
    desk.check(axe)
    desk.save()
    assert Job.objects.get(pk=failed.pk).state in (JobState.QUEUED, JobState.SCHEDULED)
