"""Triage: what people say of errors stands beside them, ends in time, and is never overwritten unseen."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from jobs import clock, operator, triage
from jobs.console import remember
from jobs.errors import InvalidValue
from jobs.models import OperatorAction, Triage
from jobs.results import Failed
from jobs.text import ErrorText
from tests.db.test_admin_tools import operator_with, user_with
from tests.factories import Connection, claim, finish, process, schedule

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
ERRORS, URL = "/admin/jobs/job/errors/", "/admin/jobs/job/errors/triage/"
PRINT = "00000000000000aa"
BOTH = ("view_job", "triage_error")


def fail(connection: Connection, fingerprint: str = PRINT) -> None:
    text = ErrorText("ValueError", f"no {fingerprint}", "", fingerprint)
    finish(
        connection, claim(connection, schedule(), process(connection)), Failed(text, timedelta(), final=True)
    )


def standings(client: Client) -> dict[str, str]:
    remember.forget()
    context = client.get(ERRORS).context
    return {card.group.fingerprint: card.group.standing for card in [*context["cards"], *context["ignored"]]}


def test_a_group_goes_from_new_to_known_and_back_to_new_in_time(connection: Connection) -> None:
    fail(connection)
    client = operator_with(*BOTH)
    assert standings(client) == {PRINT: "new"}
    row, before = triage.mark(PRINT, "known", owner="maria", note="#12", until=clock.now() + HOUR)
    assert row
    assert before == {"state": "new"}
    assert standings(client) == {PRINT: "known"}
    Triage.objects.update(until=clock.now() - HOUR)
    assert standings(client) == {PRINT: "new"}


def test_what_is_mended_is_back_when_it_fails_again(connection: Connection) -> None:
    fail(connection)
    client = operator_with(*BOTH)
    triage.mark(PRINT, "mended")
    Triage.objects.update(at=clock.now() + HOUR)
    assert standings(client) == {PRINT: "mended"}
    Triage.objects.update(at=clock.now() - HOUR)
    assert standings(client) == {PRINT: "back"}


def test_what_is_ignored_stands_apart(connection: Connection) -> None:
    fail(connection)
    fail(connection, "00000000000000bb")
    triage.mark(PRINT, "ignored", note="noise")
    context = operator_with(*BOTH).get(ERRORS).context
    assert [card.group.fingerprint for card in context["cards"]] == ["00000000000000bb"]
    assert [card.group.said.note for card in context["ignored"]] == ["noise"]


def test_the_overview_tells_of_what_nobody_has_dealt_with(connection: Connection) -> None:
    fail(connection)
    client = operator_with("view_job", "view_process", "view_queue")

    def problems() -> str:
        remember.forget()
        found = re.search(r'<ul class="problems".*?</ul>', client.get("/admin/jobs/").text, re.DOTALL)
        return found[0] if found else ""

    assert "1 job failed in the last hour, in 1 way." in problems()
    triage.mark(PRINT, "known")
    assert "failed in the last hour" not in problems()
    fail(connection, "00000000000000bb")
    assert "1 job failed in the last hour, in 1 way that nobody has dealt with; 1 way is known." in problems()
    triage.mark(PRINT, "mended")
    Triage.objects.update(at=clock.now() - HOUR)
    assert "2 jobs failed in the last hour, in 2 ways; 1 one was said to be mended." in problems()


def test_the_page_says_it_and_records_before_and_after(connection: Connection) -> None:
    fail(connection)
    client = operator_with(*BOTH)
    page = client.get(URL, {"fingerprint": PRINT})
    assert page.context["form"]["state"].value() == "known"
    said = {"state": "known", "owner": "maria", "note": "ticket 12", "lasts": "7d", "seen": ""}
    response = client.post(f"{URL}?fingerprint={PRINT}", said, follow=True)
    assert "These errors are known." in response.text
    assert "maria takes care of it." in response.text
    row = Triage.objects.get()
    assert row.until
    assert timedelta(days=6) < row.until - clock.now() <= timedelta(days=7)
    action = OperatorAction.objects.get()
    assert (action.verb, action.target, action.before, action.reason) == (
        "triage", {"error": PRINT}, {"state": "new"}, "ticket 12",
    )  # fmt: skip
    assert (action.after["state"], action.after["owner"]) == ("known", "maria")


def test_nobody_overwrites_what_somebody_said_meanwhile(connection: Connection) -> None:
    fail(connection)
    client, other = operator_with(*BOTH), user_with(*BOTH)
    said = {
        "state": "ignored",
        "seen": client.get(URL, {"fingerprint": PRINT}).context["form"]["seen"].value() or "",
    }
    operator.triage(other, PRINT, "known")
    response = client.post(f"{URL}?fingerprint={PRINT}", said)
    assert f"{other.username} has said meanwhile that it is known" in response.text
    assert Triage.objects.get().state == "known"
    said["seen"] = client.get(URL, {"fingerprint": PRINT}).context["form"]["seen"].value()
    assert client.post(f"{URL}?fingerprint={PRINT}", said).status_code == 302
    assert Triage.objects.get().state == "ignored"
    operator.triage(other, PRINT, "new")
    response = client.post(f"{URL}?fingerprint={PRINT}", said)
    assert "has taken back meanwhile" in response.text
    assert not Triage.objects.exists()


def test_who_may_not_is_refused_and_recorded() -> None:
    client = operator_with("view_job")
    assert client.get(URL, {"fingerprint": PRINT}).status_code == 403
    assert client.post(f"{URL}?fingerprint={PRINT}", {"state": "known"}).status_code == 403
    assert set(OperatorAction.objects.values_list("verb", "result")) == {("triage", "denied")}
    assert operator_with(*BOTH, tenants=["acme"]).get(URL, {"fingerprint": PRINT}).status_code == 403
    assert not Triage.objects.exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"fingerprint": ""}, "fingerprint: '' is none"),
        ({"fingerprint": "x" * 17}, "1 to 16"),
        ({"state": "solved"}, "none of new, known, ignored, mended"),
        ({"until": clock.now}, "still to come"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], told: str) -> None:
    asked = {"fingerprint": PRINT, "state": "known"} | {
        name: value() if callable(value) else value for name, value in given.items()
    }
    with pytest.raises(InvalidValue, match=told):
        triage.mark(**asked)
    assert not Triage.objects.exists()


def test_a_broken_form_changes_nothing() -> None:
    client = operator_with(*BOTH)
    response = client.post(f"{URL}?fingerprint={PRINT}", {"state": "known", "seen": "yesterday"})
    assert "This form is broken" in response.text
    assert client.post(f"{URL}?fingerprint={PRINT}", {"state": "x"}).status_code == 200
    assert client.get(URL, follow=True).status_code == 200
    assert not Triage.objects.exists()
