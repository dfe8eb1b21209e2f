"""The console without script: by links, forms and reloading alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from jobs.console import remember
from jobs.models import Hold, Operation, Tenant
from tests.browser.conftest import Visit
from tests.browser.test_journeys import follow, search
from tests.browser.world import World, build
from tests.factories import Connection

pytestmark = pytest.mark.browser


@pytest.fixture
def world(connection: Connection, maria: User) -> Iterator[World]:
    remember.forget()
    yield build(connection, maria, rich=False)
    remember.forget()


def test_2_why_has_this_job_not_run(plain: Visit, world: World) -> None:
    Tenant.objects.filter(slug="acme").update(max_running=0)
    page = plain.go("/admin/jobs/")
    search(page, str(world.by_state["queued"].pk))
    page.wait_for_url(f"**/{world.by_state['queued'].pk}/change/")
    assert "Tenant acme is at its limit" in page.locator(".why").inner_text()


def test_4_a_deploy_broke_a_type(plain: Visit, world: World) -> None:
    page = plain.go("/admin/jobs/")
    page.locator(".problem", has_text="jobs failed").get_by_role("link").click()
    page.locator(".error-group", has_text="gateway said").get_by_role("link", name="Retry all 7").click()
    page.get_by_label("Reason").fill("the gateway is back")
    page.locator("input[type=submit].default").click()
    page.wait_for_url("**/operation/*/change/")
    assert Operation.objects.get().verb == "retry"


def test_6_pause_a_queue_and_resume_it(plain: Visit, world: World) -> None:
    page = plain.go("/admin/jobs/queue/one/?name=test.echo")
    follow(page, "Hold this queue")
    page.get_by_label("Reason").fill("gateway is down")
    page.get_by_role("button", name="Save", exact=True).click()
    assert "held by maria" in page.locator(".console-holds").inner_text()
    follow(page, re.compile("Resume"))
    follow(page.locator("#content"), re.compile("Resume"))
    page.locator("input[type=submit].default").click()
    page.get_by_text("is no longer held").wait_for()
    assert Hold.objects.get().until is not None
