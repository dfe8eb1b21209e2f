"""Live refresh: what changes is shown without a reload, and nothing is taken away from under the hands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from jobs.console import remember
from jobs.models import Tenant
from jobs.states import JobState
from tests.browser.visit import HIDE, Visit
from tests.browser.world import hold
from tests.factories import Connection, claim, job_in, process, schedule

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    remember.forget()
    yield
    remember.forget()


def press_refresh(visit: Visit) -> None:
    """As the timer would, and the end of it."""
    ask(visit)
    visit.page.locator("[aria-busy=true]").wait_for(state="detached")


def ask(visit: Visit) -> None:
    """Until there is an answer, whatever becomes of it."""
    remember.forget()
    with visit.page.expect_response(lambda response: response.request.resource_type == "fetch"):
        visit.page.keyboard.press("r")


def test_the_page_of_a_job_follows_it(desk: Visit, connection: Connection, maria: User) -> None:
    job = schedule()
    page = desk.go(f"/admin/jobs/job/{job.pk}/change/")
    page.locator("#live .job-state .state-queued").wait_for()
    claim(connection, job, process(connection))
    press_refresh(desk)
    page.locator("#live .job-state .state-running").wait_for()


def test_a_list_does_not_jump_but_offers_what_is_new(
    desk: Visit, connection: Connection, maria: User
) -> None:
    job = schedule()
    page = desk.go("/admin/jobs/job/")
    schedule(), schedule()
    claim(connection, job, process(connection))
    press_refresh(desk)
    pill = page.locator("#new-rows")
    pill.wait_for()
    assert pill.inner_text() == "2 new"
    assert page.locator("#result_list tbody tr").count() == 1
    assert page.locator("#result_list tbody tr .state").inner_text() == JobState.RUNNING
    desk.click(pill.get_by_role("link"))
    assert page.locator("#result_list tbody tr").count() == 3


def test_what_has_the_focus_stays(desk: Visit, connection: Connection, maria: User) -> None:
    job = schedule()
    page = desk.go(f"/admin/jobs/job/{job.pk}/change/")
    page.locator("#live a").first.focus()
    claim(connection, job, process(connection))
    press_refresh(desk)
    assert page.locator("#live .job-state .state-queued").count() == 1
    page.evaluate("document.activeElement.blur()")
    press_refresh(desk)
    page.locator("#live .job-state .state-running").wait_for()


def test_the_same_again_is_not_sent_again(desk: Visit, connection: Connection, maria: User) -> None:
    job = job_in(JobState.COMPLETED, connection)  # nothing on its page is told by how long ago it was
    page = desk.go(f"/admin/jobs/job/{job.pk}/change/")
    statuses: list[int] = []
    page.on("response", lambda response: statuses.append(response.status))
    press_refresh(desk)
    press_refresh(desk)
    assert statuses == [200, 304]


def test_a_server_that_is_gone_is_told_and_survived(desk: Visit, connection: Connection, maria: User) -> None:
    job = schedule()
    page = desk.go(f"/admin/jobs/job/{job.pk}/change/")
    page.clock.install()
    page.reload()
    desk.forgiven.append("503")  # the browser itself reports it
    page.route("**/*_live=1*", lambda route: route.fulfill(status=503, body=""))
    page.clock.run_for(60_000)
    page.locator("[data-age]").get_by_text("old").wait_for()
    page.unroute("**/*_live=1*")
    press_refresh(desk)
    page.locator("[data-age]").wait_for(state="hidden")


def test_a_hidden_page_does_not_ask(desk: Visit, connection: Connection, maria: User) -> None:
    job = schedule()
    page = desk.go(f"/admin/jobs/job/{job.pk}/change/")
    page.clock.install()
    page.reload()
    page.evaluate(HIDE, True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "_live=1" in request.url else None)
    page.clock.run_for(120_000)
    assert asked == []
    with page.expect_response("**/*_live=1*"):
        page.evaluate(HIDE, False)


def test_what_is_pressed_stays_where_it_is(desk: Visit, connection: Connection, maria: User) -> None:
    schedule(tenant="acme")
    page = desk.go(f"/admin/jobs/tenant/{Tenant.objects.get(slug='acme').pk}/change/")
    page.locator("#id_max_running").fill("7")
    save = page.get_by_role("button", name="Save", exact=True)
    save.hover()
    page.mouse.down()
    hold("tenant", "acme")  # its line would push the button down
    ask(desk)
    page.evaluate("new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))")
    assert page.locator("#live .notice").count() == 0
    with page.expect_navigation():
        page.mouse.up()
    assert Tenant.objects.get(slug="acme").max_running == 7
