"""Every page, in both themes, on a desk and on a phone: nothing said on the console, no violation of WCAG 2.2 AA.

With SCREENSHOTS=folder each leaves its pictures there, and those of the empty and the broken ones beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from jobs.console import remember
from jobs.models import Hold, Operation, OperatorAction, Process, Queue, Tenant
from jobs.search import guard
from tests.browser.visit import SIZES, Visit
from tests.browser.world import World, build, hold, under_way
from tests.factories import Connection

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shop")]
SHARES = 6
"""So many tests share the pages, that they can run side by side."""


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    remember.forget()
    yield
    remember.forget()


def addresses(world: World) -> dict[str, str]:
    tenant, queue = Tenant.objects.get(slug="acme"), Queue.objects.get()
    base = "/admin/jobs"
    found = {
        "overview": f"{base}/",
        "overview-24h": f"{base}/?span=24h",
        "jobs": f"{base}/job/",
        "failed": f"{base}/job/failed/",
        "errors": f"{base}/job/errors/",
        "waiting": f"{base}/job/waiting/",
        "triage": f"{base}/job/errors/triage/?fingerprint=00000000000000aa",
        "forecast": f"{base}/job/forecast/",
        "queues": f"{base}/queue/",
        "queue": f"{base}/queue/one/?name=reports",
        "queue-limits": f"{base}/queue/{queue.pk}/change/",
        "types": f"{base}/job/types/",
        "type": f"{base}/job/types/one/?name=billing.charge",
        "tenants": f"{base}/tenant/",
        "tenant": f"{base}/tenant/{tenant.pk}/change/",
        "workers": f"{base}/process/workers/",
        "dispatchers": f"{base}/process/dispatchers/",
        "processes": f"{base}/process/",
        "process": f"{base}/process/{Process.objects.order_by('id')[0].pk}/change/",
        "cron": f"{base}/crondefinition/",
        "cron-add": f"{base}/crondefinition/add/",
        "cron-one": f"{base}/crondefinition/{world.definition.pk}/change/",
        "cron-history": f"{base}/crondefinition/{world.definition.pk}/history/",
        "ticks": f"{base}/crondefinition/{world.definition.pk}/ticks/",
        "preview": f"{base}/crondefinition/preview/?expression=30+2+*+*+*&timezone=Europe/Berlin",
        "audit": f"{base}/operatoraction/",
        "audit-one": f"{base}/operatoraction/{OperatorAction.objects.order_by('id')[0].pk}/change/",
        "health": f"{base}/job/health/",
        "preferences": f"{base}/job/me/",
        "holds": f"{base}/hold/",
        "hold-add": f"{base}/hold/add/?scope=queue&key=reports",
        "hold-lift": f"{base}/hold/{Hold.objects.get().pk}/lift/",
        "operations": f"{base}/operation/",
        "operation-new": f"{base}/operation/new/retry/?q=state:failed+finished:last-24h",
        "operation": f"{base}/operation/{Operation.objects.get().pk}/change/",
        "search": f"{base}/job/?q=state:failed+tenant:acme+finished:last-24h",
        "search-wrong": f"{base}/job/?q=colour:red",
        "search-nothing": f"{base}/job/?q=tenant:acme+state:cancelled+due:tomorrow",
        "cancelled": f"{base}/job/{world.cancelled.pk}/change/",
    }
    return found | {f"job-{state}": f"{base}/job/{job.pk}/change/" for state, job in world.by_state.items()}


@pytest.mark.parametrize("share", range(SHARES))
def test_every_page_is_quiet_accessible_and_fits(
    desk: Visit, connection: Connection, maria: User, axe: str, share: int
) -> None:
    world = build(connection, maria)
    hold("queue", "billing")
    under_way(maria)
    wrong = []
    for name, path in list(addresses(world).items())[share::SHARES]:
        desk.go(path)
        wrong += judged(desk, name, axe)
    assert not wrong, "\n".join(wrong)


def judged(desk: Visit, name: str, axe: str) -> list[str]:
    """What is wrong with the page on any size of screen, in any theme."""
    wrong = []
    with desk.still():
        for size in SIZES:
            desk.resize(size)
            desk.shoot(name)
            wrong += desk.wrong(axe, in_both=True)
    return wrong


def test_every_page_is_useful_when_there_is_nothing(desk: Visit, axe: str, maria: User) -> None:
    told = {
        "/admin/jobs/": "Three steps to the first job",
        "/admin/jobs/job/": "No job due between",
        "/admin/jobs/job/errors/": "No job failed in the last 24h.",
        "/admin/jobs/job/forecast/": "Nothing comes due in the next hour.",
        "/admin/jobs/queue/one/?name=nowhere": "No type of this code names it",
        "/admin/jobs/job/types/one/?name=nowhere": "No code here",
        "/admin/jobs/tenant/": "No tenant yet.",
        "/admin/jobs/crondefinition/": "No cron definition yet.",
        "/admin/jobs/operation/": "No operation yet.",
        "/admin/jobs/operatoraction/": "Nothing yet.",
        "/admin/jobs/hold/": "Nothing is held.",
        "/admin/jobs/process/workers/": "No worker is alive.",
        "/admin/jobs/process/dispatchers/": "No dispatcher is alive",
        "/admin/jobs/job/health/": "Days ahead",
    }
    for path, words in told.items():
        desk.go(path)
        assert words in desk.content(), path
        name = path.removeprefix("/admin/").partition("?")[0].strip("/").replace("/", "-")
        assert not (wrong := judged(desk, f"empty-{name}", axe)), "\n".join(wrong)


def test_a_page_that_took_too_long_says_so(
    desk: Visit, connection: Connection, axe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "PATIENCE", timedelta(milliseconds=50))
    pages = {"slow-overview": "/admin/jobs/", "slow-errors": "/admin/jobs/job/errors/?span=7d"}
    with connection.transaction():
        connection.execute("LOCK TABLE jobs_outcome, jobs_queueentry IN ACCESS EXCLUSIVE MODE")
        for name, path in pages.items():
            desk.go(path)
            assert "and was stopped" in desk.content()
            assert not (wrong := judged(desk, name, axe)), "\n".join(wrong)


def test_the_zone_of_the_operator_is_that_of_the_pages(
    desk: Visit, connection: Connection, maria: User
) -> None:
    world = build(connection, maria, rich=False)
    page = desk.go("/admin/jobs/job/me/")
    page.get_by_label("Time zone").fill("Asia/Tokyo")
    desk.press("Save preferences")
    page.get_by_text("Your preferences were saved.").wait_for()
    for path in ("/admin/jobs/job/", f"/admin/jobs/job/{world.cancelled.pk}/change/"):
        desk.go(path)
        assert " JST" in desk.content()
    page = desk.go("/admin/jobs/job/me/")
    page.get_by_label("Time zone").fill("Mars/Olympus")
    desk.press("Save preferences")
    page.get_by_text("There is no time zone of this name.").wait_for()


def test_nothing_of_a_row_becomes_markup(desk: Visit, connection: Connection, maria: User) -> None:
    from tests.browser.attack import plant

    for path in plant(connection, maria):
        page = desk.go(path)
        assert page.evaluate("window.pwned") is None
        assert page.locator("img[src=x], svg[onload], script:not([src])").count() == 0, path


def test_keys_lead_and_never_while_something_is_typed(
    desk: Visit, connection: Connection, maria: User
) -> None:
    build(connection, maria, rich=False)
    page = desk.go("/admin/jobs/job/")
    page.keyboard.press("g")
    page.keyboard.press("e")
    page.wait_for_url("**/job/errors/")
    page.keyboard.press("/")
    page.keyboard.type("gj?")
    assert page.locator("#console-q").input_value() == "gj?"
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url("**/jobs/job/")
    page.keyboard.press("j")
    page.keyboard.press("x")
    assert page.locator("input.action-select:checked").count() == 1
    first = page.locator("#result_list tbody tr").first.locator("th a").get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{first}")
