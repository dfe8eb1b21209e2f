"""Searches on 20,000 jobs over 35 days: each rides on an index in the order of its page, stays in the days of its window
and reads little more than it shows."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from jobs import clock, db
from jobs.models import Job
from jobs.partitions import day_of, ensure_days
from jobs.search import compile_query, find
from jobs.search.find import Walk
from jobs.search.guard import bounded
from jobs.search.sources import sources
from tests.schema.test_query_plans import AHEAD, BACK, _fill

pytestmark = pytest.mark.usefixtures("transactional_db")

TWO_DAYS = 15_000
"""The rows of today and yesterday, which are the fullest."""

LINES: dict[str, tuple[str, int]] = {
    # line: an index that it rides on, most rows that it may read for a page of 51
    "due:-3d..now": ("jobs_job__.*_pkey", 100),
    "tenant:t03 due:-15d..now": ("jobs_job__.*tenant_id_due_at_idx", 200),
    "type:test.echo due:-15d..now": (
        "jobs_job__.*(job_type_due_at_idx|pkey)",
        200,
    ),  # one of three: early in a day
    "group:rare due:-15d..now": ("jobs_job__.*group_due_at_idx", 3000),  # a small leaf may be read whole
    "state:cancelled due:-15d..now": ("jobs_outcome__.*state_due_at_job_id_idx", 3000),
    "state:failed due:-15d..now": ("jobs_outcome__.*state_due_at_job_id_idx", 200),
    "state:failed,cancelled due:-15d..now": ("jobs_outcome__.*state_due_at_job_id_idx", 300),
    "state:cancelled tenant:t03 due:-15d..now": ("jobs_(outcome|job)__.*", 3000),
    "state:completed due:-3d..now": ("jobs_outcome__.*_pkey", 6000),
    "state:scheduled due:now..+5d": ("jobs_timer__.*_pkey", 200),
    "state:queued due:-2h..now": ("jobs_queueentry_pkey", 6000),
    "attempt:>0 state:failed due:-15d..now": ("jobs_outcome__.*state_due_at_job_id_idx", 300),
    "late:>1h state:failed due:-1d..now": ("jobs_(outcome|job)__.*", TWO_DAYS),  # none is: it may read them
    "ran:>1h state:failed due:-3d..now": ("jobs_outcome__.*", 3000),
    "type:test.echo payload.value:17 due:-15d..now": ("jobs_job__.*(job_type_due_at_idx|pkey)", 900),
    "type:test.echo payload.value:17 state:failed due:-1d..now": (
        "jobs_(outcome|job)__.*",
        TWO_DAYS,
    ),  # as above
    "run:now..+2h": ("jobs_timer__.*_pkey", 6000),
    "is:stuck due:-3d..now": ("jobs_queueentry_.*", 6000),
    "finished:-1h..now state:failed due:-15d..now": ("jobs_outcome__.*finished_at_idx.*", 6000),
}


@pytest.fixture(scope="module")
def filled(own_database: str) -> None:
    with db.connect(name="punctual test") as connection:
        now = clock.now()
        ensure_days(day_of(now) - timedelta(days=BACK), day_of(now) + timedelta(days=AHEAD))
        _fill(connection)
        # one of twenty failed, one of five hundred was cancelled, of the rest all went well
        connection.execute(
            "UPDATE jobs_outcome SET state = CASE WHEN hashtext(job_id::text) % 500 = 0 THEN 'cancelled' "
            "WHEN hashtext(job_id::text) % 20 = 0 THEN 'failed' ELSE 'completed' END, finished_at = due_at"
        )
        connection.execute("UPDATE jobs_job SET payload = '{\"value\": 17}' WHERE hashtext(id::text) % 5 = 0")
        connection.execute("UPDATE jobs_job SET \"group\" = 'rare' WHERE hashtext(id::text) % 300 = 0")
        connection.execute("ANALYZE")


def plan_of(line: str) -> tuple[dict[str, Any], Any]:
    query = compile_query(line, clock.now())
    by_end = query.finished is not None
    walk = Walk(query, None, 51, "default", up=False, by_end=by_end)
    parts = [walk._ordered(source)[:51] for source in sources(query, query.due, "default", by_end=by_end)]
    found = (
        parts[0] if len(parts) == 1 else parts[0].union(*parts[1:], all=True).order_by("-at", "-job_id")[:51]
    )
    with bounded("default"):
        text = found.explain(format="json", analyze=True, buffers=True)
    (plan,) = json.loads(text)
    return plan["Plan"], query


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(each for child in plan.get("Plans", []) for each in nodes(child))]


@pytest.mark.parametrize("line", LINES)
def test_a_search_reads_little_more_than_it_shows(filled: None, line: str) -> None:
    plan, query = plan_of(line)
    index, most = LINES[line]
    ran = [node for node in nodes(plan) if node["Actual Loops"]]
    read = sum(
        round((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
        for node in ran
        if "Scan" in node["Node Type"] and "Subquery" not in node["Node Type"]
    )
    assert read <= most, line
    indexes = {node["Index Name"] for node in ran if "Index Name" in node}
    assert any(re.fullmatch(index, name) for name in indexes), indexes
    days = {
        match[0]
        for node in nodes(plan)
        if (match := re.search(r"\d{4}_\d\d_\d\d$", node.get("Relation Name", "")))
    }
    assert len(days) <= (query.due.end - query.due.start) / timedelta(days=1) + 2


def test_a_page_is_found_in_one_statement_and_shown_in_a_second(filled: None) -> None:
    from django.test.utils import CaptureQueriesContext

    for line in LINES:
        with CaptureQueriesContext(connections["default"]) as captured:
            query = compile_query(line, clock.now())
            find(query)
        sent = [
            each["sql"]
            for each in captured
            if not each["sql"].startswith(("BEGIN", "COMMIT", "SELECT set_config", "SELECT clock_timestamp"))
        ]
        assert len(sent) <= (3 if "tenant:" in line else 2), sent
    assert Job.objects.due_between(clock.now(), clock.now() + timedelta(days=1)).exists()
