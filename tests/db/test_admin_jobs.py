"""The list of jobs: a window, exact words, paging by key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from jobs.models import Job
from jobs.newjob import NewJob
from jobs.states import JobState
from tests.db.test_admin_tools import JOBS, page_of
from tests.factories import Connection, job_in, schedule

pytestmark = pytest.mark.django_db


def listed(client: Client, **asked: Any) -> list[Any]:
    return list(client.get(JOBS, asked).context["cl"].result_list)


@pytest.mark.parametrize("state", list(JobState))
def test_the_list_shows_each_state(admin_client: Client, connection: Connection, state: JobState) -> None:
    job = job_in(state, connection)
    response = admin_client.get(JOBS, {"state": state.value})
    assert f'<span class="state state-{state}">{state}</span>' in response.text
    assert [found.pk for found in response.context["cl"].result_list] == [job.pk]
    others = [other.value for other in JobState if other is not state]
    assert not any(listed(admin_client, state=other) for other in others)


def test_only_jobs_due_around_today_are_listed_by_default(admin_client: Client) -> None:
    near = schedule(delay=timedelta(hours=1))
    far = schedule(delay=timedelta(days=4))
    assert listed(admin_client) == [near]
    until = (datetime.now(UTC) + timedelta(days=5)).isoformat()
    assert listed(admin_client, until=until) == [far, near]


@pytest.mark.parametrize("name", ["tenant", "job_type", "group"])
def test_words_are_searched_exactly(admin_client: Client, name: str) -> None:
    values = {"tenant": "acme", "job_type": "test.echo", "group": "spring"}
    job = schedule(values["job_type"], tenant="acme", group="spring")
    schedule("test.noop", tenant="other")
    assert listed(admin_client, **{name: values[name]}) == [job]
    assert listed(admin_client, **{name: values[name][:-1]}) == []
    assert listed(admin_client, **{name: values[name].upper()}) == []


def test_a_job_id_leads_to_its_page_whatever_the_window(admin_client: Client) -> None:
    job = schedule(delay=timedelta(days=4))
    response = admin_client.get(JOBS, {"id": f" {job.pk} ", "since": "banana"})
    assert response.status_code == 302
    assert response["Location"] == page_of(job)


def test_pages_are_disjoint_complete_and_lead_back(admin_client: Client) -> None:
    due_at = datetime.now(UTC) + timedelta(minutes=1)
    new = [NewJob(job_type="test.noop", due_at=due_at + timedelta(seconds=n // 40)) for n in range(120)]
    Job.objects.schedule_many(new)  # many share their due time
    first = admin_client.get(JOBS).context["cl"]
    second = admin_client.get(JOBS + first.older).context["cl"]
    third = admin_client.get(JOBS + second.older).context["cl"]
    found = [job.pk for page in (first, second, third) for job in page.result_list]
    assert found == list(Job.objects.order_by("-due_at", "-id").values_list("pk", flat=True))
    assert (first.newer, third.older) == (None, None)
    back = admin_client.get(JOBS + third.newer).context["cl"]
    assert [job.pk for job in back.result_list] == [job.pk for job in second.result_list]
    assert admin_client.get(JOBS + back.newer).context["cl"].newer is None


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"since": "banana"}, "Enter a valid date/time."),
        ({"since": "2026-11-02T00:00", "until": "2026-11-01T00:00"}, "not later than the beginning"),
        ({"since": "2026-01-01T00:00", "until": "2026-11-01T00:00"}, "at most 31 days"),
        ({"since": "0001-01-01T00:00", "until": "0001-01-02T00:00"}, "no jobs so far away"),
        ({"id": "zzz"}, "This is no job id."),
        ({"after": "zzz"}, "Nothing was searched"),
        ({"after": "ffffffff-ffff-7fff-bfff-ffffffffffff"}, "Nothing was searched"),
        ({"state": "gone"}, "not one of the available choices"),
        ({"tenant": "a\0b"}, "Null characters are not allowed."),
        ({"group": "x" * 101}, "at most 100 characters"),
    ],
)
def test_what_cannot_be_read_is_said_and_nothing_is_searched(
    admin_client: Client, asked: dict[str, str], told: str
) -> None:
    schedule()
    response = admin_client.get(JOBS, asked)
    assert response.status_code == 200
    assert told in response.text
    assert response.context["cl"].result_list == []


@pytest.mark.parametrize(
    "name", ["payload__api_key", "queue__iregex", "tenant__slug", "o", "q", "p", "all", "_facets", "cron_id"]
)
def test_lookups_in_the_address_are_ignored_and_named(admin_client: Client, name: str) -> None:
    job = schedule()
    response = admin_client.get(JOBS, {name: "1"})
    assert response.context["cl"].result_list == [job]
    assert f"ignored: {name}." in response.text


def test_the_payload_is_not_loaded(admin_client: Client) -> None:
    schedule(payload={"secret": "x"})
    (job,) = listed(admin_client)
    assert "payload" in job.get_deferred_fields()


def test_an_empty_window_says_what_was_looked_at(admin_client: Client) -> None:
    response = admin_client.get(JOBS, {"since": "2026-01-01T00:00", "until": "2026-01-02T00:00"})
    assert "No job between" in response.text
    assert "2026-01-01 00:00:00 UTC" in response.text
