"""The console without script: by links, forms and reloading alone."""

from __future__ import annotations

import re

import pytest

from jobs.models import Hold, Operation, Tenant
from tests.browser.visit import Visit
from tests.browser.world import World

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shop")]


def test_2_why_has_this_job_not_run(plain: Visit, world: World) -> None:
    Tenant.objects.filter(slug="acme").update(max_running=0)
    page = plain.go("/admin/jobs/")
    plain.search(str(world.by_state["queued"].pk))
    assert "Tenant acme is at its limit" in page.locator(".why").inner_text()
    assert plain.clicks == 1


def test_4_a_deploy_broke_a_type(plain: Visit, world: World) -> None:
    page = plain.go("/admin/jobs/")
    plain.click(page.locator(".problem", has_text="jobs failed").get_by_role("link"))
    plain.follow("Retry all 7", page.locator(".error-group", has_text="gateway said"))
    page.get_by_label("Reason").fill("the gateway is back")
    plain.save()
    assert Operation.objects.get().verb == "retry"
    assert plain.clicks == 3


def test_6_pause_a_queue_and_resume_it(plain: Visit, world: World) -> None:
    page = plain.go("/admin/jobs/queue/one/?name=reports")
    plain.follow("Hold this queue")
    page.get_by_label("Reason").fill("gateway is down")
    plain.press(re.compile("^Save$"))
    assert plain.clicks == 2
    assert "held by maria" in page.locator(".console-holds").inner_text()
    plain.follow(re.compile("Resume"))
    plain.follow(re.compile("Resume"), page.locator("#content"))
    plain.save()
    page.get_by_text("is no longer held").wait_for()
    assert Hold.objects.get().until is not None
