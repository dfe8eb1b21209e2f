"""A ticker's pass costs the same beside a thousand definitions and beside many: only what is due is read.

(`manage.py benchmark cron` measures the time of it beside a million.)
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any, LiteralString, cast

import psycopg

from dispatch.ticker import Ticker
from jobs import clock
from jobs.tenants import tenant_ids
from tests.factories import DjangosConnection
from tests.schema.explain import Recorder

Connection = psycopg.Connection[Any]
FEW, MANY = 1_000, 20_000
SPARE = 4
"""Blocks: one more level of an index, and the pages of what other tests have left dead. All definitions would be hundreds."""
_SPREAD: LiteralString = (
    "INSERT INTO jobs_crondefinition (name, tenant_id, expression, timezone, dst, job_type, payload, priority, enabled, "
    "misfire, misfire_grace, catchup_window, catchup_limit, overlap, source, next_slot, look_at, last_slot, revision, "
    "broken) SELECT 's' || n, %s, '0 0 * * *', 'UTC', 'cron', 'test.noop', '{}', 0, true, 'run_once', '1 min', '1 day', "
    "100, 'allow_all', '', at, at, now(), 1, '' FROM (SELECT n, now() + interval '10 min' + random() * interval '1 day' "
    "AS at FROM generate_series(%s::int, %s) n) spread"
)


def cost(here: Connection) -> tuple[Counter[str], Counter[str]]:
    """Blocks and rows that the statements of one pass look at, by statement."""
    recorder = Recorder(cast(Connection, DjangosConnection()))
    work, blocks, rows = Ticker(), Counter[str](), Counter[str]()
    work._synced = True
    stand_in: Any = recorder
    assert work.run_once(stand_in, clock.now()) == 0
    for seen in recorder.seen:
        blocks[seen.name] += seen.blocks
        rows[seen.name] += seen.read
        assert not seen.sequential, seen
    return blocks, rows


def test_a_pass_reads_the_same_beside_few_definitions_and_beside_many(here: Connection) -> None:
    tenant_id = tenant_ids(["default"])["default"]
    found = []
    for first, last in ((1, FEW), (FEW + 1, MANY)):
        here.execute(_SPREAD, [tenant_id, first, last])
        here.execute("ANALYZE jobs_crondefinition")
        found.append(cost(here))
    (few_blocks, few_rows), (many_blocks, many_rows) = found
    assert set(few_blocks) == {"open_revisions", "due_definitions", "next_look"}
    assert few_rows == many_rows
    assert many_rows["due_definitions"] == 0
    assert many_rows["next_look"] <= 1
    for name, blocks in many_blocks.items():
        assert blocks <= few_blocks[name] + SPARE, name


def test_the_sleep_until_the_next_look_is_worked_out_from_the_first_row_of_the_index(
    here: Connection,
) -> None:
    here.execute(_SPREAD, [tenant_ids(["default"])["default"], 1, FEW])
    now = clock.now()
    here.execute(
        "UPDATE jobs_crondefinition SET look_at = %s WHERE name = 's7'", [now + timedelta(seconds=1.5)]
    )
    work = Ticker()
    work._synced = True
    work.run_once(here, now)
    assert work.period == 1.5
