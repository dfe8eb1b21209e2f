"""What asks back before it does something, what waits for a second person, and what has no place to be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs import operations
from jobs.console import places
from jobs.models import Operation, Queue, Tenant
from tests.browser.test_pages import judged
from tests.browser.visit import Visit
from tests.browser.world import World, under_way
from tests.factories import Connection

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shop")]


See = Callable[..., None]


@pytest.fixture
def see(desk: Visit, axe: str) -> Iterator[See]:
    """The page says these words; what else is wrong with it fails the test at its end."""
    wrong: list[str] = []

    def look(name: str, *told: str) -> None:
        for words in told:
            assert words in desk.content(), (name, words)
        wrong.extend(judged(desk, name, axe))

    yield look
    assert not wrong, "\n".join(wrong)


def test_what_is_done_to_a_job_asks_back(desk: Visit, world: World, see: See) -> None:
    failed = f"/admin/jobs/job/{world.by_state['failed'].pk}/change/"
    desk.go(failed)
    desk.press(re.compile("^Retry"))
    see("ask-retry", "run again", "reports.render")
    page = desk.go(failed)
    desk.press(re.compile("^Show values"))
    see("ask-reveal", "those of secrets stay hidden")
    page.get_by_label("Reason").fill("the customer asks")
    desk.save()
    see("revealed", "81723")


def test_what_is_done_to_ticked_jobs_asks_back(desk: Visit, world: World, see: See) -> None:
    page = desk.go("/admin/jobs/job/?q=state:scheduled due:next-1h")
    for row in range(3):
        page.locator("input.action-select").nth(row).check()
    page.locator("select[name=action]").select_option("cancel_selected")
    desk.click(page.get_by_role("button", name=re.compile("^(Go|Run)")).first)
    see("ask-cancel", "Cancel 3 jobs")
    page = desk.go("/admin/jobs/job/?q=tenant:acme")
    for summary in page.locator(".search-tools summary").all():
        summary.click()
    see("search-tools", "Save search", "JSON lines")


def test_what_is_done_to_a_cron_definition_asks_back(desk: Visit, world: World, see: See) -> None:
    for label in ("Pause", "Backfill"):
        desk.go(f"/admin/jobs/crondefinition/{world.definition.pk}/change/")
        desk.press(label)
        see(f"ask-{label.lower()}", "30 2 * * *")


@pytest.mark.parametrize("name", ["tenant", "queue", "tenantmember"])
def test_what_is_added_or_deleted_is_told(desk: Visit, world: World, see: See, name: str) -> None:
    desk.go(f"/admin/jobs/{name}/add/")
    see(f"{name}-add")
    if name == "tenantmember":
        desk.go(f"/admin/jobs/{name}/")
        see("members")
    else:
        row = Queue.objects.get() if name == "queue" else Tenant.objects.create(slug="initrode")
        desk.go(f"/admin/jobs/{name}/{row.pk}/delete/")
        see(f"{name}-delete", "Are you sure")


@pytest.fixture
def asked(world: World, settings: Any) -> Operation:
    """Ben's, which waits for somebody else."""
    settings.SCHEDULER = {**settings.SCHEDULER, "approve_above": 3}
    line = "type:mail.send state:scheduled due:next-1h"
    return operations.submit(User.objects.create_superuser("ben"), "cancel", line, "sent by mistake")


def test_a_second_person_is_told_and_approves(desk: Visit, asked: Operation, see: See) -> None:
    page = desk.go("/admin/jobs/")
    see("approval-notice", "1 operation waits for your approval.")
    desk.click(page.locator(".problem", has_text="approval").get_by_role("link"))
    see("approval", "It waits for your approval")
    page.get_by_label("Reason").fill("agreed with marketing")
    desk.press("Approve")
    see("approved", "Approved by")
    asked.refresh_from_db()
    assert (asked.state, asked.approver_name) == ("queued", "maria")


def test_who_asks_for_much_is_told_who_approves(
    desk: Visit, world: World, asked: Operation, maria: User, see: See
) -> None:
    desk.go("/admin/jobs/operation/")
    see("approval-list", "asked")
    desk.go(f"/admin/jobs/operation/new/cancel/?q=group:{world.group} due:-1d..%2B1d")
    see("approval-needed", "when somebody else has approved it")
    under_way(maria)
    desk.go("/admin/jobs/operation/new/cancel/?q=group:autumn-mailing due:now..%2B1d")
    see("operation-typed", "To confirm")


PLACELESS = {
    "overview": ("/admin/jobs/", 200),  # the answer is Django's own
    "errors": ("/admin/jobs/job/errors/", 429),
    "jobs": ("/admin/jobs/job/", 429),
    "new": ("/admin/jobs/operation/new/cancel/?q=tenant:acme", 429),
}


@pytest.mark.parametrize("name", PLACELESS)
def test_a_page_without_a_place_says_so(
    desk: Visit, world: World, see: See, maria: User, connection: Connection, name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(places, "PATIENCE", timedelta(milliseconds=50))
    desk.forgiven.append("status of 429")
    with connection.transaction(force_rollback=True):
        for n in range(places.AT_ONCE):
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [places.key(maria, n)])
        path, status = PLACELESS[name]
        response = desk.page.goto(desk.url + path)
        assert response is not None
        assert response.status == status
        see(f"busy-{name}", "Other pages of yours are still being read")
