"""What keeps an operator from harm: the password before a change, and the way back after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.console import remember
from jobs.models import OperatorAction, Tenant
from tests.browser.test_pages import judged
from tests.browser.visit import Visit

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shop")]


@pytest.fixture
def acme(maria: User) -> Iterator[Tenant]:
    """Maria has logged in before passwords were asked for."""
    remember.forget()
    yield Tenant.objects.get_or_create(slug="acme")[0]
    remember.forget()


def change(visit: Visit, acme: Tenant, most: str) -> None:
    page = visit.go(f"/admin/jobs/tenant/{acme.pk}/change/")
    page.get_by_label("Max running", exact=False).first.fill(most)
    visit.press("Save")


@pytest.mark.parametrize("with_script", [True, False])
def test_a_limit_is_changed_with_the_password_and_taken_back(
    request: pytest.FixtureRequest, acme: Tenant, axe: str, settings: Any, with_script: bool
) -> None:
    visit: Visit = request.getfixturevalue("desk" if with_script else "plain")
    settings.SCHEDULER = {**settings.SCHEDULER, "password_age": 900}
    wrong: list[str] = []

    def judge(name: str) -> None:
        if with_script:
            wrong.extend(judged(visit, name, axe))

    change(visit, acme, "20")
    judge("password")
    visit.page.get_by_label("Password").fill("x")
    visit.press("Go on")
    judge("limit-changed")
    assert Tenant.objects.get(slug="acme").max_running == 20
    visit.follow("Undo …")
    judge("undo")
    visit.page.get_by_label("Reason").fill("a mistake")
    visit.press("Undo")
    assert Tenant.objects.get(slug="acme").max_running is None
    action = OperatorAction.objects.get(verb="undo limit")
    visit.go(f"/admin/jobs/operatoraction/{action.pk}/change/")
    judge("audit-undo")
    assert "Undo this change" in visit.content()
    visit.go("/admin/jobs/job/health/")
    judge("health")
    with visit.page.expect_download() as taken:
        visit.page.get_by_role("button", name="Support bundle").click()
    assert taken.value.suggested_filename.startswith("support-")
    assert not wrong, "\n".join(wrong)
