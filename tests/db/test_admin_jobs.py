"""The list of jobs: a window, exact words, paging by key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from jobs.models import Job, SavedView
from jobs.newjob import NewJob
from jobs.states import JobState
from tests.db.test_admin_tools import JOBS, messages_of, operator_with, page_of
from tests.factories import Connection, job_in, schedule

pytestmark = pytest.mark.django_db


def listed(client: Client, line: str = "") -> list[Any]:
    return list(client.get(JOBS, {"q": line}).context["cl"].result_list)


@pytest.mark.parametrize("state", list(JobState))
def test_the_list_shows_each_state(admin_client: Client, connection: Connection, state: JobState) -> None:
    job = job_in(state, connection)
    response = admin_client.get(JOBS, {"q": f"state:{state}"})
    assert f'<span class="state state-{state}">{state}</span>' in response.text
    assert [found.pk for found in response.context["cl"].result_list] == [job.pk]
    assert listed(admin_client, f"-state:{state}") == []


def test_only_jobs_due_around_today_are_listed_by_default(admin_client: Client) -> None:
    near = schedule(delay=timedelta(hours=1))
    far = schedule(delay=timedelta(days=4))
    assert listed(admin_client) == [near]
    assert listed(admin_client, "due:today..+5d") == [far, near]


@pytest.mark.parametrize("name", ["tenant", "type", "group", "queue"])
def test_words_are_searched_exactly(admin_client: Client, name: str) -> None:
    values = {"tenant": "acme", "type": "test.echo", "group": "spring sale", "queue": "mail"}
    job = schedule(values["type"], tenant="acme", group="spring sale", queue="mail")
    schedule("test.noop", tenant="other")
    assert listed(admin_client, f'{name}:"{values[name]}"') == [job]
    assert listed(admin_client, f'{name}:"{values[name][:-1]}"') == []
    assert listed(admin_client, f'{name}:"{values[name].upper()}"') == []


@pytest.mark.parametrize("line", ["{}", " {} ", "id:{}"])
def test_a_job_id_leads_to_its_page_whatever_the_window(admin_client: Client, line: str) -> None:
    job = schedule(delay=timedelta(days=4))
    response = admin_client.get(JOBS, {"q": line.format(job.pk)})
    assert response.status_code == 302
    assert response["Location"] == page_of(job)


def test_pages_are_disjoint_complete_and_lead_back(admin_client: Client) -> None:
    due_at = datetime.now(UTC) + timedelta(minutes=1)
    new = [NewJob(job_type="test.noop", due_at=due_at + timedelta(seconds=n // 40)) for n in range(120)]
    Job.objects.schedule_many(new)  # many share their due time
    first = admin_client.get(JOBS, {"q": "due:now..+1h"}).context["cl"]
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
        ({"q": "due:banana"}, "is no time"),
        ({"q": "due:now..-1d"}, "ends before it begins"),
        ({"q": "due:2026-01-01..2026-11-01"}, "at most 31 days"),
        ({"q": "due:0001-01-01"}, "no jobs so far away"),
        ({"q": "id:zzz"}, "is no job id"),
        ({"q": "zzz"}, "no key, type, tenant or queue has this name"),
        ({"after": "zzz"}, "no place in the list"),
        ({"after": "ffffffff-ffff-7fff-bfff-ffffffffffff"}, "no place in the list"),
        ({"before": "2026-11-01T00:00~0193b3c0-0000-7000-8000-000000000000"}, "no place in the list"),
        ({"q": "state:gone"}, "There is no state"),
        ({"q": "state:failde"}, "Did you mean failed?"),
        ({"q": "tenant:a\0b"}, "Null characters"),
        ({"q": "tenant:nobody"}, "There is no tenant"),
        ({"q": "stat:failed"}, "Did you mean state:?"),
    ],
)
def test_what_cannot_be_read_is_said_and_nothing_is_searched(
    admin_client: Client, asked: dict[str, str], told: str
) -> None:
    schedule()
    response = admin_client.get(JOBS, asked)
    assert response.status_code == 200
    assert told in response.text
    assert "Nothing was searched" in response.text
    assert response.context["cl"].result_list == []


def test_the_place_of_a_mistake_is_marked(admin_client: Client) -> None:
    text = admin_client.get(JOBS, {"q": "tenant:x stat:failed"}).text
    assert "tenant:x stat:failed\n         ^^^^" in text


@pytest.mark.parametrize(
    "name",
    ["payload__api_key", "queue__iregex", "tenant__slug", "o", "p", "all", "_facets", "cron_id", "state"],
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
    response = admin_client.get(JOBS, {"q": "due:2026-01-01"})
    assert "No job due between" in response.text
    assert "All of it was looked at" in response.text


def test_a_link_to_a_search_means_the_same_tomorrow(admin_client: Client) -> None:
    job = schedule(tenant="acme", delay=timedelta(minutes=5))
    link = admin_client.get(JOBS, {"q": "tenant:acme due:now..+1h"}).context["cl"].form.link
    assert "now" not in link
    assert list(admin_client.get(JOBS + link).context["cl"].result_list) == [job]


def test_a_term_is_taken_out_by_its_chip(admin_client: Client) -> None:
    form = admin_client.get(JOBS, {"q": "state:failed due:today"}).context["cl"].form
    assert form.chips == [("state:failed", "?q=due%3Atoday"), ("due:today", "?q=state%3Afailed")]


def test_searches_are_saved_shared_and_forgotten() -> None:
    mine, yours = operator_with("view_job", "share_view"), operator_with("view_job")
    save = "/admin/jobs/job/views/save/"
    mine.post(save, {"name": "tardy", "query": "is:overdue"})
    assert "tardy" not in yours.get(JOBS).text
    mine.post(save, {"name": "tardy", "query": "is:overdue due:today", "shared": "on"})
    view = SavedView.objects.get()
    assert (view.query, view.shared) == ("is:overdue due:today", True)
    assert ">tardy</a>" in yours.get(JOBS).text
    yours.post(f"/admin/jobs/job/views/{view.pk}/forget/")
    assert SavedView.objects.exists()
    mine.post(f"/admin/jobs/job/views/{view.pk}/forget/")
    assert not SavedView.objects.exists()


def test_a_search_is_shared_by_who_may_and_saved_only_if_it_can_be_read() -> None:
    client = operator_with("view_job")
    save = "/admin/jobs/job/views/save/"
    client.post(save, {"name": "tardy", "query": "is:overdue", "shared": "on"})
    assert not SavedView.objects.get().shared
    response = client.post(save, {"name": "bad", "query": "stat:x"}, follow=True)
    assert "Not saved" in messages_of(response)[-1]
    assert SavedView.objects.count() == 1
