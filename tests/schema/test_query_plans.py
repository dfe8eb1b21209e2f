"""Plans are behaviour: what each statement reads on 20,000 jobs over 35 days, with and without good statistics.

No `enable_*` switch is touched that a session does not touch itself. "empty": the planner's statistics say that every table is empty, as they do when a
burst follows a quiet night. Then a statement may read a whole table once, and never once a row. "generic": prepared, and
planned once for all values, as in a worker's sessions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import timedelta
from typing import Any, cast

import psycopg
import pytest
from django.db import transaction

from jobs import bulk, clock, db
from jobs.bulk import insert_many
from jobs.ids import IdRun, ceil_ms
from jobs.newjob import Row, Terms
from jobs.partitions import PARENTS, bounds, day_of, ensure_days
from jobs.sql import leaf
from jobs.tenants import tenant_ids
from tests.factories import DjangosConnection
from tests.schema.explain import Recorder, Seen
from tests.schema.plans import NUMBER, everything

pytestmark = pytest.mark.usefixtures("transactional_db")
Connection = psycopg.Connection[Any]

BACK, AHEAD, TENANTS = 17, 17, 20
SOON = 400
ENTRIES, TIMERS, OUTCOMES, KEYS, DEFINITIONS = 5_000, 5_000, 10_000, 2_000, 1_000

Plans = dict[str, list[Seen]]
STATISTICS = [f"{kind}{how}" for kind in ("analysed", "empty", "uncommitted") for how in ("", ", generic")]
STATISTICS.append("few, generic")
STATEMENTS: dict[str, tuple[str, float, int]] = {
    # statement: the index it rides on, most rows read per row asked for, written or returned, most leaves of one table
    "schedule_timer": ("", 0, 1),
    "schedule_entry": ("", 0, 1),
    "take_keys": ("", 0, 0),
    "take_over_keys": ("jobs_uniquekey_once", 2, 0),
    "dispatch": ("jobs_timer__.*_pkey", 2, 1),
    "timer_with_entry": ("jobs_queueentry_pkey", TIMERS * 2, 1),  # rare: it looks at all timers of a day
    "hop": ("jobs_queueentry_ready", 2, 0),
    "look": ("jobs_queueentry_next", 4, 0),
    "sweep": ("jobs_queueentry_ready", 1, 0),
    "fence": ("jobs_queueentry_ready", ENTRIES / TENANTS / 5, 0),  # here its stride is longer than any pair
    "free": ("jobs_queueentry_tenant", 10, 0),
    "lock_queue": ("", 1, 0),
    "lock_tenants": ("", 1, 0),
    "claim": ("jobs_queueentry_ready", 4, 1),
    "relay": ("jobs_queueentry_ready", 8, 1),
    "payloads": ("jobs_job__.*_pkey", 2, 1),
    "known claims": ("jobs_queueentry_pkey", 1, 0),
    "all claims": ("jobs_queueentry_queue", 2, 0),
    "suspects": ("jobs_queueentry_suspect", 1, 0),
    "lock_claims": ("jobs_queueentry_pkey", 1, 0),
    "complete": ("jobs_queueentry_pkey", 3, 1),
    "end": ("jobs_queueentry_pkey", 3, 1),
    "put_back": ("jobs_queueentry_pkey", 2, 0),
    "attempts": ("", 0, 1),
    "settled_before": ("jobs_outcome__.*_pkey", 2, 1),
    "orphans": ("jobs_queueentry_(queue|tenant)", NUMBER * 3, 0),  # it looks at all that is leased
    "claims_of": ("jobs_queueentry_(queue|tenant)", 6, 0),
    "park": ("jobs_queueentry_(ready|next)", 6, 0),  # what is due and known to somebody is passed on the way
    "unpark": ("jobs_queueentry_parked", 2, 0),
    "lock_keys": ("", 0, 0),
    "admit": ("jobs_queueentry_key", 8, 0),
    "keys_due": ("jobs_queueentry_keydue", 10, 0),
    "keys_waiting": ("jobs_queueentry_keyline", 8, 0),
    "park_held": (
        "jobs_queueentry_(next|ready|keydue)",
        20,
        0,
    ),  # what is due and not held is passed on the way
    "unpark_held": (
        "jobs_queueentry_held",
        20,
        0,
    ),  # sorted in vain when the statistics say that there is none
    "cancel_timers": ("jobs_timer__.*", 4, 3),
    "cancel_entries": ("jobs_queueentry_pkey", 4, 0),
    "reschedule_timers": ("jobs_timer__.*", 4, 3),
    "reschedule_entries": ("jobs_queueentry_pkey", 4, 0),
    "retry": ("jobs_(outcome|job)__.*", 4, 3),
    "due_definitions": ("jobs_crondefinition_due", 1, 0),
    "next_look": ("jobs_crondefinition_due", 1, 0),
    "open_revisions": ("", 1, 0),  # empty here, and most of the time
    "cron_runs": ("", 2, 0),
    "unfinished": ("jobs_(timer__.*|queueentry)_pkey", 4, 3),
    "retell_ticks": ("", 4, 2),
    "ticks": ("", 0, 0),
    "advance_definitions": ("", DEFINITIONS / 50, 0),
    "move_timers": ("jobs_timer__.*", 8, 3),
    "move_entries": ("jobs_queueentry_pkey", 8, 0),
}
ONE_PASS = {"put_back", "cancel_entries", "reschedule_entries", "park_held", "move_entries"}
"""A hundred of five thousand entries by id or place, or all of one of two queues: one pass may be cheaper."""

PAIRS = {"put_back", "retry", "move_timers", "move_entries"}
"""Compares a hundred with a hundred, or with a small queue; `put_back` only in a session that plans for values, and the
loops that send it have others."""

ELSEWHERE = {"take_over_keys"}
"""By another index when all look alike: it reads what has expired and was not cleaned up yet."""

PASSES_IN_15 = {"cancel_timers", "reschedule_timers", "retry", "unfinished", "move_timers"}
"""Lists of ids and of due times: before 17 such an index scan costs the product of both, and more than a small leaf."""


@pytest.fixture(scope="module")
def filled(own_database: str) -> dict[str, Plans]:
    """Both sets of plans, on one set of rows."""
    with db.connect(name="punctual test") as connection:
        now = clock.now()
        ensure_days(day_of(now) - timedelta(days=BACK), day_of(now) + timedelta(days=AHEAD))
        connection.execute("ALTER TABLE jobs_queueentry SET (autovacuum_enabled = off)")
        connection.execute(
            "VACUUM ANALYZE jobs_queueentry, jobs_uniquekey, jobs_process, jobs_crondefinition"
        )
        for parent in PARENTS:
            for days in range(-2, 3):
                name = leaf(parent, day_of(now) + timedelta(days=days))
                connection.execute(f'ANALYZE "{name}"')
        _fill(connection)
        plans = {"empty": _plans(), "empty, generic": _plans(generic=True)}
        connection.execute(_UNCOMMITTED)
        plans |= {"uncommitted": _plans(), "uncommitted, generic": _plans(generic=True)}
        connection.execute("ANALYZE")
        plans |= {"analysed": _plans(), "analysed, generic": _plans(generic=True)}
        for statement in _FEW:
            connection.execute(statement)
        plans |= {"few, generic": _plans(generic=True)}
    return plans


_UNCOMMITTED = """
    UPDATE pg_class SET relpages = pg_relation_size(oid) / current_setting('block_size')::int, reltuples = 0
    WHERE relkind IN ('r', 'i') AND relname LIKE 'jobs_%'
"""
"""As ANALYZE leaves it that comes while a burst is inserted: many pages, and not one row that counts."""

_FEW = (
    "CREATE TEMPORARY TABLE kept AS SELECT * FROM jobs_queueentry",
    "DELETE FROM jobs_queueentry WHERE job_id NOT IN (SELECT job_id FROM kept LIMIT 10)",
    "ANALYZE jobs_queueentry",
    "INSERT INTO jobs_queueentry SELECT * FROM kept ON CONFLICT DO NOTHING",
)
"""And that comes at a quiet moment after a burst: ten rows in an index of many pages, which looks dear to walk in order."""


def _fill(connection: Connection) -> None:
    """Most jobs are of these days, as they are: there a leaf read whole would be seen."""
    made = tenant_ids(f"t{n:02}" for n in range(TENANTS))
    tenants = [made[slug] for slug in sorted(made)]
    now, ids = clock.now(), IdRun()

    def row(n: int, due: timedelta) -> Row:
        due_at = ceil_ms(now + due)
        kind = f"test.{('noop', 'echo', 'flaky')[n % 3]}"
        terms = Terms("", kind, f"q{n % 2}", n // TENANTS % 5, None, 5, tenants[n % TENANTS])
        return Row(ids.next(due_at), due_at, terms, "{}")

    due = [row(n, -timedelta(seconds=n % 3600)) for n in range(ENTRIES)]
    # Most timers are of one day, whatever time it is: a leaf that is small enough may be read whole.
    waiting = [row(n, timedelta(minutes=10, seconds=n * 10)) for n in range(SOON)]
    later = bounds(day_of(now) + timedelta(days=2))[0] - now
    waiting += [row(n, later + timedelta(seconds=n * 20)) for n in range(TIMERS * 4 // 5 - SOON)]
    waiting += [row(n, timedelta(hours=13 + n * (AHEAD - 1) * 24 / TIMERS * 5)) for n in range(TIMERS // 5)]
    today = bounds(day_of(now))[0] - now  # whatever time it is, yesterday and today have many that ended
    ended = [row(n, today + timedelta(days=n / OUTCOMES * 2.5 - 1)) for n in range(OUTCOMES * 4 // 5)]
    ended += [row(n, -timedelta(hours=40 + n * (BACK - 2) * 24 / OUTCOMES * 5)) for n in range(OUTCOMES // 5)]
    with connection.transaction(), connection.cursor() as cursor:
        insert_many(cursor, waiting, now + timedelta(seconds=5))
        bulk._copy(cursor, bulk._JOB, map(bulk._job(), due + ended))
        bulk._copy(cursor, bulk._ENTRY, map(bulk._entry(0), due))  # due since their time, though inserted now
        cursor.execute(
            "INSERT INTO jobs_outcome (job_id, due_at, state, attempt, max_attempts, crashes, finished_at) "
            "SELECT id, due_at, 'failed', 1, 5, 0, now() FROM jobs_job WHERE id = ANY(%s)",
            [[each.id for each in ended]],
        )
        cursor.execute(
            "INSERT INTO jobs_uniquekey (tenant_id, job_type, key, job_id) "
            "SELECT n %% 20, 't', n::text, gen_random_uuid() FROM generate_series(1, %s) n",
            [KEYS],
        )
        cursor.execute(
            "INSERT INTO jobs_crondefinition (name, tenant_id, expression, timezone, dst, job_type, payload, priority, "
            "enabled, misfire, misfire_grace, catchup_window, catchup_limit, overlap, source, look_at, revision, "
            "broken, last_slot) SELECT n, %s, '* * * * *', 'UTC', 'cron', 'test.noop', '{}', 0, true, 'run_once', "
            "'1 min', '1 day', 100, 'allow_all', '', now() + CASE WHEN n <= 50 THEN '0' ELSE interval '1 day' END, 1, "
            "'', now() FROM generate_series(1, %s) n",
            [tenants[0], DEFINITIONS],
        )


def _plans(*, generic: bool = False) -> Plans:
    found: Plans = defaultdict(list)
    with transaction.atomic():
        recorder = Recorder(cast(Connection, DjangosConnection()), generic)
        everything(recorder)
        transaction.set_rollback(True)
    for seen in recorder.seen:
        found[seen.name].append(seen)
    return found


def _server_version() -> int:
    with db.connect(name="punctual test") as connection:
        return connection.info.server_version


FIRST = {"hop": 2 * 1000}
"""What is read besides: of each of two queues the first that are due, for types that are unknown."""


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_reads_what_it_needs(filled: dict[str, Plans], statistics: str, name: str) -> None:
    _, most, _ = STATEMENTS[name]
    assert filled[statistics][name], "it was not sent"
    for seen in filled[statistics][name]:
        if name not in PASSES_IN_15 or _server_version() >= 170_000:
            assert seen.read <= most * seen.rows + FIRST.get(name, 0), seen
        if name not in PAIRS or (name == "put_back" and statistics.endswith("generic")):
            assert seen.compared <= 4 * max(seen.rows, seen.read), seen
        assert seen.blocks <= 400 + 60 * max(seen.rows, seen.read), seen


@pytest.mark.parametrize(
    "statistics",
    ["analysed", "analysed, generic", "empty, generic", "uncommitted, generic", "few, generic"],
)
@pytest.mark.parametrize("name", [name for name, (index, _, _) in STATEMENTS.items() if index])
def test_a_statement_rides_on_its_index(filled: dict[str, Plans], statistics: str, name: str) -> None:
    if name in PASSES_IN_15 and _server_version() < 170_000:
        return
    if name in ELSEWHERE and statistics.startswith("uncommitted"):
        return
    index = re.compile(STATEMENTS[name][0])
    seen = filled[statistics][name]
    assert any(index.fullmatch(each) for one in seen for each in one.indexes), seen
    assert name in ONE_PASS or not any("jobs_queueentry" in one.sequential for one in seen), seen


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_visits_only_the_days_it_names(
    filled: dict[str, Plans], statistics: str, name: str
) -> None:
    for seen in filled[statistics][name]:
        for parent in PARENTS:
            leaves = {each for each in seen.relations if each.startswith(f"{parent}__")}
            assert len(leaves) <= STATEMENTS[name][2], seen
