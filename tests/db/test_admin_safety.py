"""GET, forged posts, foreign addresses and slow searches do no harm."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from jobs.search import guard
from jobs.states import JobState
from tests.db.test_admin_tools import JOBS, audit, client_of, command, naming, user_with
from tests.factories import Connection, job_in, schedule

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("verb", ["retry", "cancel", "reveal"])
def test_get_changes_nothing(admin_client: Client, connection: Connection, verb: str) -> None:
    job = job_in(JobState.FAILED, connection)
    assert admin_client.get(command(verb), naming(job, confirmed="1")).status_code == 405
    assert (job.state, audit()) == (JobState.FAILED, [])


def test_a_post_without_token_changes_nothing(connection: Connection) -> None:
    user, job = user_with("view_job", "cancel_job"), job_in(JobState.QUEUED, connection)
    client = client_of(user, enforce_csrf_checks=True)
    assert client.post(command("cancel"), naming(job, confirmed="1")).status_code == 403
    assert (job.state, audit()) == (JobState.QUEUED, [])


@pytest.mark.parametrize("place", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", ""])
def test_nobody_is_led_away(admin_client: Client, place: str) -> None:
    response = admin_client.post(command("cancel"), naming(schedule(), confirmed="1", next=place))
    assert response["Location"] == JOBS


def test_a_search_that_takes_too_long_is_stopped_and_keeps_its_words(
    admin_client: Client, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule()
    monkeypatch.setattr(guard, "PATIENCE", timedelta(milliseconds=50))
    with connection.transaction():
        connection.execute("LOCK TABLE jobs_job IN ACCESS EXCLUSIVE MODE")
        response = admin_client.get(JOBS, {"q": "type:test.noop"})
    assert response.status_code == 200
    assert "looked back to" in response.text
    assert response.context["cl"].form.text == "type:test.noop"
    assert len(admin_client.get(JOBS).context["cl"].result_list) == 1


@pytest.mark.parametrize(
    ("page", "asked"),
    [
        ("crondefinition/", {"queue": "\0"}),
        ("crondefinition/", {"expression": "a\0b"}),
        ("process/", {"kind": "\0"}),
        ("crondefinition/add/", {"tenant": "zz"}),
        ("crondefinition/add/", {"tenant": "\0"}),
        ("crondefinition/add/", {"start_at": "zz", "name": "\0"}),
        ("hold/add/", {"until": "99999999999999999999"}),
        ("hold/add/", {"until": "\0", "key": "\0"}),
        ("tenantmember/add/", {"tenant": "zz"}),
    ],
)
def test_sc_03_garbage_in_an_address_is_no_error_of_ours(
    admin_client: Client, page: str, asked: dict[str, str]
) -> None:
    assert admin_client.get(f"/admin/jobs/{page}", asked, follow=True).status_code == 200


def test_a_link_to_a_form_fills_in_what_it_says(admin_client: Client) -> None:
    asked = {"key": "mail", "scope": "queue", "until": "2030-01-02T03:04Z"}
    page = admin_client.get("/admin/jobs/hold/add/", asked).text
    assert 'value="mail"' in page
    assert 'value="2030-01-02"' in page
