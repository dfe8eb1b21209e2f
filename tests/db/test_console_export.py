"""Exports: the rows of a list and nothing else, bounded, recorded, and harmless to whoever opens them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from jobs.console import export
from jobs.models import OperatorAction
from jobs.search import guard
from jobs.states import JobState
from tests.db.test_admin_tools import JOBS, messages_of, operator_with
from tests.factories import Connection, job_in, schedule

pytestmark = pytest.mark.django_db
URL, AUDIT = f"{JOBS}export/", "/admin/jobs/operatoraction/export/"


@pytest.fixture
def operator() -> Client:
    return operator_with("view_job", "view_operatoraction", "export_job")


@pytest.fixture(autouse=True)
def _all_places_given_back() -> Iterator[None]:
    yield
    taken = [export._places.acquire(blocking=False) for _ in range(export.AT_ONCE + 1)]
    assert taken == [True] * export.AT_ONCE + [False]
    for _ in range(export.AT_ONCE):
        export._places.release()


def text_of(response: Any) -> str:
    assert response.status_code == 200
    return str(response.getvalue().decode())


def table(client: Client, url: str = URL, **asked: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text_of(client.post(url, {"format": "csv", **asked})))))


def lines(client: Client, url: str = URL, **asked: Any) -> list[dict[str, Any]]:
    found = text_of(client.post(url, {"format": "jsonl", **asked}))
    return [json.loads(line) for line in found.splitlines()]


def test_what_a_search_finds_is_a_table_in_the_order_of_the_list(
    operator: Client, connection: Connection
) -> None:
    jobs = [job_in(JobState.FAILED, connection, queue=f"q{n}") for n in range(3)]
    schedule("test.echo", {"card": "4111"})
    rows = table(operator, q="state:failed")
    assert [row["id"] for row in rows] == sorted((str(job.pk) for job in jobs), reverse=True)
    assert rows[0]["error"] == "ValueError: no"
    assert rows[0]["tenant"] == jobs[0].tenant.slug
    assert rows[0]["due_at"].endswith("+00:00")
    whole = text_of(operator.post(URL, {"q": "", "format": "csv"}))
    assert "test.echo" in whole
    assert "4111" not in whole
    assert "card" not in whole


def test_json_lines_end_with_how_many_there_were(operator: Client) -> None:
    jobs = [schedule(group='a "quoted", one') for _ in range(2)]
    *rows, end = lines(operator, q="")
    assert {row["id"] for row in rows} == {str(job.pk) for job in jobs}
    assert rows[0]["group"] == 'a "quoted", one'
    assert end == {"end": {"rows": 2, "complete": True}}


def test_it_is_recorded_before_a_row_is_sent(operator: Client) -> None:
    response = operator.post(URL, {"q": "state:failed due:today", "format": "csv"})
    action = OperatorAction.objects.get()
    assert (action.verb, action.result, action.target["format"]) == ("export", "done", "csv")
    assert action.target["query"].startswith("state:failed due:20")  # absolute
    text_of(response)


def test_who_may_not_is_refused_and_recorded() -> None:
    schedule()
    client = operator_with("view_job")
    assert client.post(URL, {"q": "", "format": "csv"}).status_code == 403
    assert OperatorAction.objects.get().result == "denied"
    assert "export/" not in client.get(JOBS).text
    assert operator_with("export_job").post(URL, {"q": ""}).status_code == 403


def test_an_export_holds_the_operators_tenants_alone() -> None:
    schedule(tenant="zebra")
    mine = schedule(tenant="acme")
    client = operator_with("view_job", "export_job", tenants=["acme"])
    assert [row["id"] for row in table(client, q="due:-2d..+2d")] == [str(mine.pk)]
    response = client.post(URL, {"q": "tenant:zebra", "format": "csv"}, follow=True)
    assert "There is no tenant" in messages_of(response)[0]


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "+x", "-x"])
def test_no_cell_is_a_formula(operator: Client, name: str) -> None:
    schedule(group=name)
    (row,) = table(operator, q="")
    assert row["group"] == f"'{name}"
    (line, _) = lines(operator, q="")
    assert line["group"] == name


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"q": "stat:x", "format": "csv"}, "There is no term"),
        ({"q": "", "format": "xlsx"}, "there are csv and jsonl alone"),
    ],
)
def test_what_cannot_be_exported_is_told(operator: Client, asked: dict[str, str], told: str) -> None:
    response = operator.post(URL, asked, follow=True)
    assert told in messages_of(response)[0]
    assert not OperatorAction.objects.filter(result="done").exists()


def test_more_than_the_most_is_cut_and_says_where_to_go_on(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "ROWS", 5)
    monkeypatch.setattr(export, "PAGE", 2)
    ids = sorted((str(schedule().pk) for _ in range(7)), reverse=True)
    *rows, end = lines(operator, q="")
    assert [row["id"] for row in rows] == ids[:5]
    assert end["end"]["complete"] is False
    assert "5 rows are the most" in end["end"]["told"]
    rest = operator.get(JOBS, {"q": "", "after": end["end"]["next"]})
    assert [str(job.pk) for job in rest.context["cl"].result_list] == ids[5:]
    last = text_of(operator.post(URL, {"q": "", "format": "csv"})).splitlines()[-1]
    assert last.startswith("#,5 rows are the most")
    monkeypatch.setattr(export, "ROWS", 7)
    assert lines(operator, q="")[-1] == {"end": {"rows": 7, "complete": True}}


def test_one_that_takes_too_long_is_cut(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "SECONDS", -1.0)
    monkeypatch.setattr(export, "PAGE", 2)
    for _ in range(3):
        schedule()
    *rows, end = lines(operator, q="")
    assert len(rows) == 2
    assert "seconds are the longest" in end["end"]["told"]


def test_a_slow_database_leaves_an_end_that_says_so(
    operator: Client, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule()
    monkeypatch.setattr(guard, "PATIENCE", timedelta(milliseconds=50))
    monkeypatch.setattr(export, "SECONDS", 0.5)  # it goes on as long as it may
    response = operator.post(URL, {"q": "type:test.noop", "format": "jsonl"})
    with connection.transaction():
        connection.execute("LOCK TABLE jobs_job IN ACCESS EXCLUSIVE MODE")
        (end,) = [json.loads(line) for line in text_of(response).splitlines()]
    assert end["end"]["complete"] is False


def test_a_few_at_once_are_enough(operator: Client) -> None:
    schedule()
    begun: list[Any] = [operator.post(URL, {"q": "", "format": "csv"}) for _ in range(export.AT_ONCE)]
    refused = operator.post(URL, {"q": "", "format": "csv"}, follow=True)
    assert "others export just now" in messages_of(refused)[0]
    for response in begun:  # whoever goes away before the first row gives the place back as well
        for close in response._resource_closers:
            close()
    assert len(table(operator, q="")) == 1


def test_the_audit_is_exported_as_its_list_is_filtered(operator: Client) -> None:
    for verb, who in (("retry", "maria"), ("cancel", "maria"), ("cancel", "sam")):
        OperatorAction.objects.create(verb=verb, actor_name=who, reason="=why", after={"x": 1})
    rows = table(operator, AUDIT, verb="cancel", q="maria")
    assert [(row["verb"], row["who"], row["reason"], row["after"]) for row in rows] == [
        ("cancel", "maria", "'=why", '{"x": 1}')
    ]
    *found, end = lines(operator, AUDIT)
    assert [row["verb"] for row in found] == ["export", "export", "cancel", "cancel", "retry"]
    assert end["end"]["rows"] == 5
    assert operator_with("view_job", "export_job").post(AUDIT).status_code == 403
    assert operator_with("view_operatoraction").post(AUDIT).status_code == 403


def test_pages_of_the_audit_meet(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PAGE", 2)
    for n in range(5):
        OperatorAction.objects.create(verb="retry", actor_name=str(n))
    *found, end = lines(operator, AUDIT, verb="retry")
    assert [row["who"] for row in found] == ["4", "3", "2", "1", "0"]
    assert end["end"] == {"rows": 5, "complete": True}
