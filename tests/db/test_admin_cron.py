"""Cron definitions in the admin: errors beside their fields, and when the rule fires."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from jobs.models import CronDefinition, OperatorAction, Tenant
from tests.db.test_admin_tools import messages_of, operator_with

pytestmark = pytest.mark.django_db

URL = "/admin/jobs/crondefinition/"


@pytest.fixture
def given() -> dict[str, Any]:
    return {
        "name": "nightly", "tenant": Tenant.objects.get_or_create(slug="acme")[0].pk, "expression": "30 2 * * *",
        "timezone": "Europe/Berlin", "dst": "cron", "job_type": "test.echo", "payload": '{"value": 1}', "queue": "",
        "priority": "0", "max_attempts": "", "enabled": "on", "misfire": "run_once", "misfire_grace": "0:01:00",
        "catchup_window": "1 00:00:00", "catchup_limit": "100", "overlap": "allow_all", "start_at_0": "",
        "jitter": "00:00:00", "spread": "00:00:00", "note": "", "every": "", "max_runs": "",
        "start_at_1": "", "end_at_0": "", "end_at_1": "",
    }  # fmt: skip


@pytest.fixture
def definition(admin_client: Client, given: dict[str, Any]) -> CronDefinition:
    admin_client.post(f"{URL}add/", given)
    return CronDefinition.objects.get()


def test_a_definition_is_added_with_a_record_and_the_warnings_of_its_rule(
    admin_client: Client, given: dict[str, Any]
) -> None:
    response = admin_client.post(f"{URL}add/", given, follow=True)
    definition = CronDefinition.objects.get()
    assert (definition.expression, definition.payload, definition.queue) == ("30 2 * * *", {"value": 1}, None)
    assert any("does not exist" in message for message in messages_of(response))
    action = OperatorAction.objects.get()
    assert (action.verb, action.changed) == ("add", 1)
    assert action.after["expression"] == "30 2 * * *"
    assert "value" not in str(action.after)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("expression", "61 * * * *", "61"),
        ("expression", "", "required"),
        ("expression", "0 0 30 2 *", "never run"),
        ("expression", "* " * 600, "512"),
        ("payload", "[" * 100_000, "nested too deep"),
        ("payload", '{"a":' * 5_000 + "1" + "}" * 5_000, "flatten it"),
        ("tenant", "acme", "valid choice"),
        ("tenant", "9" * 400, "valid choice"),
        ("timezone", "Mars/Base", "unknown time zone"),
        ("timezone", "localtime", "differs between machines"),
        ("timezone", "", "required"),
        ("dst", "nope", "valid choice"),
        ("job_type", "no.such", "not registered"),
        ("payload", "[1]", "dict of keyword arguments"),
        ("payload", "{", "valid JSON"),
        ("payload", '{"a": "\\u0000"}', "NUL"),
        ("priority", "101", "-100 to 100"),
        ("max_attempts", "0", "1 to 10000"),
        ("catchup_limit", "-1", "greater than or equal to 0"),
        ("queue", "a\tb", "unprintable"),
        ("every", "0:05:00", "give one of"),
        ("every", "soon", "valid duration"),
        ("max_runs", "0", "no whole number from 1"),
        ("jitter", "2 00:00:00", "between 0 and 1 day"),
        ("spread", "-1", "between 0 and 1 day"),
    ],
)
def test_a_wrong_value_is_told_once_beside_its_field(
    admin_client: Client, given: dict[str, Any], field: str, value: str, told: str
) -> None:
    response = admin_client.post(f"{URL}add/", {**given, field: value})
    assert response.status_code == 200
    errors = response.context["adminform"].form.errors
    assert list(errors) == [field]
    assert len(errors[field]) == 1
    assert told in errors[field][0]
    assert not CronDefinition.objects.exists()


def test_dx_03_an_end_of_the_calendar_is_told_beside_its_field(
    admin_client: Client, given: dict[str, Any]
) -> None:
    response = admin_client.post(f"{URL}add/", {**given, "end_at_0": "9999-12-31", "end_at_1": "23:59"})
    assert list(response.context["adminform"].form.errors) == ["end_at"]


def test_a_payload_that_was_emptied_is_one_without_arguments(
    admin_client: Client, given: dict[str, Any]
) -> None:
    admin_client.post(f"{URL}add/", {**given, "payload": ""})
    assert CronDefinition.objects.get().payload == {}


def test_an_end_before_the_start_is_refused(admin_client: Client, given: dict[str, Any]) -> None:
    window = {"start_at_0": "2030-01-02", "start_at_1": "0:00", "end_at_0": "2030-01-01", "end_at_1": "0:00"}
    response = admin_client.post(f"{URL}add/", {**given, **window})
    assert response.context["adminform"].form.errors


def test_the_next_fires_are_shown_in_local_time_with_offset(
    admin_client: Client, definition: CronDefinition
) -> None:
    page = admin_client.get(f"{URL}{definition.pk}/change/").text
    assert page.count("<li>") >= 5
    assert page.count(" 02:30 +0") + page.count(" 03:00 +0") == 5
    assert page.count("Europe/Berlin</") + page.count("Europe/Berlin <span") == 5


def test_slots_at_the_start_and_at_the_end_are_among_the_next_fires(
    admin_client: Client, definition: CronDefinition
) -> None:
    start = datetime(2100, 1, 1, 1, 30, tzinfo=UTC)
    CronDefinition.objects.update(start_at=start, end_at=start + timedelta(days=2))
    page = admin_client.get(f"{URL}{definition.pk}/change/").text
    assert [page.count(f"2100-01-0{day} 02:30 +0100") for day in (1, 2, 3, 4)] == [1, 1, 1, 0]


def test_what_was_changed_in_a_declared_definition_is_marked(
    admin_client: Client, definition: CronDefinition
) -> None:
    says = {
        "expression": "30 2 * * *",
        "every": None,
        "overlap": "allow_all",
        "spread": 0.0,
        "name": "nightly",
    }
    CronDefinition.objects.update(source="app.tasks.nightly", declared=says)
    page = f"{URL}{definition.pk}/change/"
    assert "Declared in code at app.tasks.nightly" in admin_client.get(page).text
    assert "hanged here:" not in admin_client.get(page).text
    assert "changed here" not in admin_client.get(URL).text
    CronDefinition.objects.update(expression="30 3 * * *", overlap="skip")
    assert "Changed here: expression, overlap." in admin_client.get(page).text
    assert "changed here" in admin_client.get(URL).text


def test_an_edit_raises_the_revision_and_records_before_and_after(
    admin_client: Client, definition: CronDefinition, given: dict[str, Any]
) -> None:
    admin_client.post(f"{URL}{definition.pk}/change/", {**given, "expression": "0 3 * * *", "revision": "99"})
    definition.refresh_from_db()
    assert (definition.expression, definition.revision) == ("0 3 * * *", 2)
    action = OperatorAction.objects.latest("id")
    assert (action.before, action.after) == ({"expression": "30 2 * * *"}, {"expression": "0 3 * * *"})


def test_saving_without_a_change_records_nothing(
    admin_client: Client, definition: CronDefinition, given: dict[str, Any]
) -> None:
    admin_client.post(f"{URL}{definition.pk}/change/", given)
    assert OperatorAction.objects.count() == 1


def test_a_definition_of_an_unknown_type_can_still_be_disabled(
    admin_client: Client, definition: CronDefinition, given: dict[str, Any]
) -> None:
    CronDefinition.objects.update(job_type="of.another.deployment")
    changed = {**given, "job_type": "of.another.deployment", "priority": "5", "enabled": ""}
    admin_client.post(f"{URL}{definition.pk}/change/", changed)
    definition.refresh_from_db()
    assert (definition.enabled, definition.priority) == (False, 5)
    wrong = admin_client.post(f"{URL}{definition.pk}/change/", {**changed, "payload": '{"a": "\\u0000"}'})
    assert "NUL" in wrong.context["adminform"].form.errors["payload"][0]


def test_a_deletion_is_recorded(admin_client: Client, definition: CronDefinition) -> None:
    admin_client.post(f"{URL}{definition.pk}/delete/", {"post": "yes"})
    assert not CronDefinition.objects.exists()
    assert OperatorAction.objects.latest("id").target["crondefinition"] == "nightly"


def test_a_preview_stores_nothing_and_tells_what_is_wrong(admin_client: Client) -> None:
    rule = {"expression": "30 2 * * *", "timezone": "Europe/Berlin", "dst": "cron"}
    page = admin_client.post(f"{URL}preview/", rule)
    assert len(page.context["fires"]) == 10
    assert [change.fires[0].utc[11:] for change in page.context["changes"]]
    assert "does not exist" in page.text
    assert "Mars" in admin_client.post(f"{URL}preview/", {**rule, "timezone": "Mars"}).context["problem"]
    again = admin_client.get(f"{URL}preview/", rule)
    assert [fire.utc for fire in again.context["fires"]] == [fire.utc for fire in page.context["fires"]]
    assert admin_client.put(f"{URL}preview/").status_code == 405
    assert not CronDefinition.objects.exists()


def test_who_may_only_view_sees_the_shape_of_the_payload(definition: CronDefinition) -> None:
    CronDefinition.objects.update(payload={"password": "hunter2", "to": "ada"})
    page = operator_with("view_crondefinition").get(f"{URL}{definition.pk}/change/").text
    assert "text of 7" in page
    assert "hunter2" not in page


@pytest.mark.parametrize(
    "given", ["every=999999999999", "every=-1e300", "jitter=P999999999999D", "start_at=0"]
)
def test_a_link_that_fills_in_what_no_field_holds_opens_the_form(admin_client: Client, given: str) -> None:
    assert admin_client.get(f"{URL}add/?{given}").status_code == 200
