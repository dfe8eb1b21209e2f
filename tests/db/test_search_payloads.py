"""`payload.path:value` finds by what a type declares searchable, by nothing else, whoever asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jobs import clock, operations
from jobs.models import Operation
from jobs.operations import run_chunk
from jobs.registry import registry
from jobs.search import compile_query, find
from jobs.search.count import Count, count
from tests.db.test_admin_tools import JOBS, operator_with, user_with
from tests.db.verbs import SITUATIONS, job_so
from tests.factories import Connection, schedule

pytestmark = pytest.mark.django_db
WIDE = "due:-2d..+2d"
PAYLOADS: dict[str, Any] = {
    "text": {"value": "acme-17", "order": {"id": 17}},
    "number": {"value": 17, "order": {"id": "17", "paid": True}},
    "decimal": {"value": 17.0, "order": {"id": 1, "paid": 1}},
    "object": {"value": {"order": 17}, "order": {"id": {"id": 17}}},
    "list": {"value": [17], "order": [{"id": 17}]},
    "words": {"value": 'say "hi", Zoë\\n'},
    "nothing": {},
    "null": {"value": None, "order": None},
}


def found(line: str, **options: Any) -> set[Any]:
    query = compile_query(f"{line} {WIDE}", clock.now(), **options)
    ids = {job.pk for job in find(query).jobs}
    assert count(query) == Count(len(ids), "exact")
    return ids


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("payload.value:17", {"number", "decimal"}),
        ("payload.value:acme-17", {"text"}),
        ("payload.value:17,acme-17", {"number", "decimal", "text"}),
        ("payload.order.id:17", {"text", "number"}),
        ("payload.order.paid:true", {"number"}),
        ("payload.order.paid:1", {"decimal"}),
        ("payload.order.paid:true,1", {"number", "decimal"}),
        ("payload.value:17 payload.order.id:17", {"number"}),
        ('payload.value:"{""order"": 17}",[17],null', set()),
        ('payload.value:"say ""hi"", Zoë\\n"', {"words"}),
        ("payload.value:ACME-17", set()),
        ("payload.value:acme", set()),
        ("payload.value:017", set()),
    ],
)
def test_a_value_is_found_as_it_is_written(line: str, expected: set[str]) -> None:
    jobs = {name: schedule("test.echo", payload).pk for name, payload in PAYLOADS.items()}
    schedule("test.noop", PAYLOADS["text"])
    schedule("test.noop", PAYLOADS["number"])
    assert found(f"type:test.echo {line}") == {jobs[name] for name in expected}


def test_of_payloads_nothing_is_guessed() -> None:
    for _ in range(5):
        schedule("test.echo", {"value": 17})
    query = compile_query(f"type:test.echo payload.value:17 {WIDE}", clock.now())
    assert count(query, cap=5) == Count(5, "exact")
    assert count(query, cap=4) == Count(4, "at least")


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_job_is_found_wherever_it_is(here: Connection, situation: str) -> None:
    job = job_so(situation, here, job_type="test.echo", payload={"value": "mine"})
    job_so(situation, here, job_type="test.echo", payload={"value": "other"}, queue="other")
    line = "type:test.echo payload.value:mine"
    assert found(line) == found(f"{line} state:{job.state}") == found(f"{line} attempt:<9") == {job.pk}
    assert found(f"{line} -state:{job.state}") == set()


def test_a_foreign_job_is_found_by_none_of_its_values() -> None:
    mine = schedule("test.echo", {"value": "same"}, tenant="acme")
    schedule("test.echo", {"value": "same"}, tenant="zebra")
    assert found("type:test.echo payload.value:same", scope=[mine.tenant_id]) == {mine.pk}


@pytest.mark.parametrize("permissions", [["view_job"], ["view_job", "reveal_payload"]])
def test_nobody_searches_by_what_is_not_declared(permissions: list[str]) -> None:
    job = schedule("test.echo", {"value": "declared", "other": "undeclared"})
    client = operator_with(*permissions)
    page = client.get(JOBS, {"q": f"type:test.echo payload.value:declared {WIDE}"}).context["cl"]
    assert [each.pk for each in page.result_list] == [job.pk]
    page = client.get(JOBS, {"q": f"type:test.echo payload.other:undeclared {WIDE}"}).context["cl"]
    assert page.result_list == []
    assert "does not declare “other” searchable" in page.form.problem.message


def test_an_operation_is_on_what_its_search_finds_and_ends_when_that_is_declared_no_more(
    here: Connection,
) -> None:
    boss = user_with("cancel_job", "bulk_job")
    mine = schedule("test.echo", {"value": "mine"})
    other = schedule("test.echo", {"value": "other"})
    line = f"type:test.echo payload.value:mine {WIDE}"
    assert operations.preview(boss, "cancel", line).count == Count(1, "exact")
    known = registry.require("test.echo")
    assert known
    registry.remove("test.echo")
    registry.add(replace(known, searchable=()))
    try:
        stopped = operations.submit(boss, "cancel", f"id:{mine.pk}", "x")
        Operation.objects.filter(pk=stopped.pk).update(query=line)
        run_chunk(operation_id=stopped.pk)
    finally:
        registry.remove("test.echo")
        registry.add(known)
    stopped.refresh_from_db()
    assert (stopped.state, stopped.changed) == ("failed", 0)
    assert "does not declare" in stopped.note
    done = operations.submit(boss, "cancel", line, "x")
    run_chunk(operation_id=done.pk)
    assert (mine.state, other.state) == ("cancelled", "queued")
