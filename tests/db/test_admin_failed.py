"""The list of failed jobs, by the time of their failure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from jobs.models import Outcome
from jobs.states import JobState
from tests.db.test_admin_tools import FAILED
from tests.factories import Connection, claim, failed, finish, job_in, process, schedule

pytestmark = pytest.mark.django_db


def test_failed_jobs_and_no_others_are_listed_with_their_error(
    admin_client: Client, connection: Connection
) -> None:
    jobs = {state: job_in(state, connection) for state in JobState}
    response = admin_client.get(FAILED)
    assert [job.pk for job in response.context["cl"].result_list] == [jobs[JobState.FAILED].pk]
    assert "ValueError: no" in response.text
    assert "1 of 20" in response.text


def test_pages_are_disjoint_and_lead_back(admin_client: Client, connection: Connection) -> None:
    worker = process(connection)
    for _ in range(60):
        finish(connection, claim(connection, schedule(), worker), failed(final=True))
    Outcome.objects.update(finished_at=datetime.now(UTC))  # the same instant for all
    first = admin_client.get(FAILED).context["cl"]
    second = admin_client.get(FAILED + first.older).context["cl"]
    found = [job.pk for page in (first, second) for job in page.result_list]
    assert len(found) == len(set(found)) == 60
    assert second.older is None
    back = admin_client.get(FAILED + second.newer).context["cl"]
    assert [job.pk for job in back.result_list] == [job.pk for job in first.result_list]


def test_one_kind_of_error_is_found_by_its_fingerprint(admin_client: Client, connection: Connection) -> None:
    job_in(JobState.FAILED, connection)
    assert len(admin_client.get(FAILED, {"q": "error:0123456789abcdef"}).context["cl"].result_list) == 1
    assert not admin_client.get(FAILED, {"q": "error:0123"}).context["cl"].result_list


def test_a_failure_outside_the_window_is_not_listed(admin_client: Client, connection: Connection) -> None:
    job_in(JobState.FAILED, connection)
    Outcome.objects.update(finished_at=datetime.now(UTC) - timedelta(days=3))
    response = admin_client.get(FAILED)
    assert response.context["cl"].result_list == []
    assert "Looked at jobs due from" in response.text


@pytest.mark.parametrize("place", ["x", "2026-11-01T00:00~x", "2026-11-01T00:00Z~", "~", "x" * 200])
def test_a_wrong_place_in_the_list_is_said(admin_client: Client, place: str) -> None:
    response = admin_client.get(FAILED, {"after": place})
    assert "Nothing was searched" in response.text
    assert response.status_code == 200
