"""`python -m tests.bench.console`: how long each page of the operator console takes, and how many statements it sends, at
`--jobs` jobs and at four times as many; the quickest of `--rounds` requests, each read anew.

The jobs lie in 35 days and have ended but for a backlog that stays the same; it makes a database of its own and drops it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import django
from django.core.management import call_command

from scheduler_project import embedded, env
from scheduler_project.scratch import new_name, scratch, with_database

DAYS = 34
"""Besides today."""
TYPES, TENANTS, BATCH, BACKLOG = 40, 2_000, 500_000, 200
AUTH = re.compile(r'"(django_session|auth_\w+)"|^(BEGIN|COMMIT|SAVEPOINT|RELEASE)|set_config|pg_try_advisory')
_JOBS = """
    INSERT INTO jobs_job (id, due_at, tenant_id, job_type, queue, priority, payload, "group", max_attempts, created_at)
    SELECT overlay(overlay(gen_random_uuid()::text PLACING substr(lpad(to_hex(ms), 12, '0'), 1, 8) || '-'
            || substr(lpad(to_hex(ms), 12, '0'), 9, 4) || '-7' FROM 1 FOR 15) PLACING 'a' FROM 20 FOR 1)::uuid,
        to_timestamp(ms / 1000.0), 1 + n %% %(tenants)s, 'type' || n %% %(types)s, 'queue' || n %% %(types)s, 0,
        '{"order": 81723}', CASE WHEN n %% 100 = 0 THEN 'mailing' || n %% 1000 END, 20, to_timestamp(ms / 1000.0)
    FROM (
        SELECT n, (
            extract(epoch FROM %(start)s::timestamptz)::float8 * 1000 + %(span)s::float8 * (%(done)s + n - random()) / %(all)s
        )::bigint AS ms
        FROM generate_series(1, %(count)s) n
    ) drawn
"""
_OUTCOMES = """
    INSERT INTO jobs_outcome (job_id, due_at, state, attempt, max_attempts, crashes, started_at, finished_at, error,
        error_fingerprint)
    SELECT id, due_at, CASE WHEN failed THEN 'failed' ELSE 'completed' END, 1, 20, 0, due_at, due_at + interval '1 s',
        CASE WHEN failed THEN 'ValueError: order ' || left(id::text, 8) || ' is gone' END,
        CASE WHEN failed THEN lpad(to_hex((random() * 20)::int), 16, '0') END
    FROM (
        SELECT id, due_at, random() < 0.002 AS failed FROM jobs_job
        WHERE due_at >= %(start)s AND due_at < %(end)s AND due_at < now() - interval '1 minute'
            AND NOT EXISTS (
                SELECT FROM jobs_outcome o WHERE o.due_at >= %(start)s AND o.due_at < %(end)s
                    AND o.due_at = jobs_job.due_at AND o.job_id = jobs_job.id
            )
    ) ended
"""
_ENTRIES = """
    INSERT INTO jobs_queueentry (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, max_attempts, waits,
        crashes, cancel_requested)
    SELECT id, due_at, CASE WHEN row_number() OVER () %% 5 = 0 THEN now() + interval '1 h' ELSE due_at END, tenant_id, queue,
        job_type, 0, 0, 20, CASE WHEN row_number() OVER () %% 5 = 0 THEN 'retry' END, 0, false
    FROM jobs_job WHERE due_at >= now() - interval '1 minute' AND due_at < now() + interval '1 day' LIMIT %(count)s
    ON CONFLICT DO NOTHING
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.console", description=__doc__)
    parser.add_argument("--jobs", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--most", type=int, default=4, help="how many times as many jobs at the end")
    asked = parser.parse_args()
    server = os.environ.get("DATABASE_URL", "").strip() or embedded.ensure()
    os.environ["DATABASE_URL"] = server
    home, name = env.database("DATABASE_URL")["NAME"], new_name("punctual_console_")
    os.environ.update(
        DATABASE_URL=with_database(server, name),
        DJANGO_SETTINGS_MODULE="scheduler_project.settings",
        SCHEDULER_APPS="tests.handlers",
        SECRET_KEY=secrets.token_urlsafe(50),
        ALLOWED_HOSTS="testserver",
        SECURE_SSL_REDIRECT="0",
        DEBUG="0",
        LOG_LEVEL="ERROR",
    )
    django.setup()
    from django.conf import settings

    settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
    with scratch(name, home, sweep=None):
        call_command("migrate", verbosity=0)
        _days()
        client = _operator()
        report: dict[str, Any] = {}
        for times in (1, asked.most):
            _grow(asked.jobs * times - _count())
            report[f"{times} x {asked.jobs:,} jobs"] = _measure(client, asked.rounds)
        small, large = report.values()
        report["ratio"] = {page: round(large[page]["ms"] / small[page]["ms"], 2) for page in small}
    print(json.dumps(report, indent=2))
    return 0


def _days() -> None:
    from jobs import clock
    from jobs.partitions import ensure_days

    today = clock.now().date()
    ensure_days(today - timedelta(days=DAYS), today + timedelta(days=3))


def _operator() -> Any:
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.create_superuser("bench"))
    return client


def _count() -> int:
    return int(
        _ask("SELECT count(*) FROM jobs_job WHERE due_at >= %(start)s AND due_at < %(end)s", **_span())[0][0]
    )


def _span() -> dict[str, Any]:
    from jobs import clock

    now = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    return {"start": now - timedelta(days=DAYS), "end": now + timedelta(days=3)}


def _grow(count: int) -> None:
    """So many jobs more; all have ended but for those of the next day, of which some wait."""
    from dispatch.rollup import Rollups
    from jobs import clock, db
    from jobs.models import Tenant

    Tenant.objects.bulk_create(
        [Tenant(id=n, slug=f"tenant{n}") for n in range(1, TENANTS + 1)], ignore_conflicts=True
    )
    span = _span()
    milliseconds = (clock.now() + timedelta(hours=2) - span["start"]) / timedelta(milliseconds=1)
    with _bare("jobs_job"):
        for done in range(0, count, BATCH):
            values = {"tenants": TENANTS, "types": TYPES, "start": span["start"], "span": milliseconds}
            _ask(_JOBS, count=min(BATCH, count - done), done=done, all=count, **values)
            print(f"{done + BATCH:,} of {count:,} jobs written", file=sys.stderr)
    if not _ask("SELECT FROM jobs_queueentry LIMIT 1"):
        _ask(_ENTRIES, count=BACKLOG)
    _ask(_OUTCOMES, **span)
    _ask("ANALYZE jobs_queueentry")
    with db.connect(name="bench") as connection:
        for (leaf,) in connection.execute(
            "SELECT c.oid::regclass::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE c.relkind = 'r'"
        ).fetchall():
            connection.execute(f"VACUUM ANALYZE {leaf}")
        Rollups().run_once(connection, clock.now())


@contextmanager
def _bare(table: str) -> Iterator[None]:
    """Without its indexes but the key: millions of rows are written in a third of the time."""
    found = _ask(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
        "WHERE indrelid = %(table)s::regclass AND NOT indisunique",
        table=table,
    )
    for name, _ in found:
        _ask(f"DROP INDEX {name}")
    yield
    for _, definition in found:
        _ask(definition.replace(" ON ONLY ", " ON "))


def _measure(client: Any, rounds: int) -> dict[str, Any]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from jobs.console import remember

    found = {}
    for name, url in _pages().items():
        times = []
        for _ in range(rounds + 1):
            remember.forget()
            begun = time.perf_counter()
            response = client.get(url)
            times.append((time.perf_counter() - begun) * 1000)
            assert response.status_code == 200, (url, response.status_code)
        remember.forget()
        with CaptureQueriesContext(connection) as captured:
            client.get(url)
        own = [query["sql"] for query in captured if not AUTH.search(query["sql"])]
        found[name] = {"ms": round(min(times[1:]), 1), "statements": len(own)}
        print(f"{name:12} {found[name]['ms']:8.1f} ms  {len(own):2} statements", file=sys.stderr)
    return found


def _pages() -> dict[str, str]:
    from jobs.models import Job, Tenant

    base, span = "/admin/jobs", _span()
    job = Job.objects.due_between(span["start"], span["end"]).order_by("due_at")[1000]
    return {
        "overview": f"{base}/",
        "jobs": f"{base}/job/",
        "failed": f"{base}/job/failed/",
        "tenant's": f"{base}/job/?q=tenant:tenant7",
        "job": f"{base}/job/{job.pk}/change/",
        "errors": f"{base}/job/errors/",
        "waiting": f"{base}/job/waiting/",
        "forecast": f"{base}/job/forecast/",
        "queues": f"{base}/queue/",
        "queue": f"{base}/queue/one/?name=queue7",
        "types": f"{base}/job/types/",
        "type": f"{base}/job/types/one/?name=type7",
        "tenants": f"{base}/tenant/",
        "tenant": f"{base}/tenant/{Tenant.objects.get(slug='tenant7').pk}/change/",
        "workers": f"{base}/process/workers/",
        "dispatchers": f"{base}/process/dispatchers/",
        "cron": f"{base}/crondefinition/",
        "cron preview": f"{base}/crondefinition/preview/?expression=30+2+*+*+*&timezone=Europe/Berlin",
        "retry all": f"{base}/operation/new/retry/?q=state:failed+tenant:tenant7+finished:last-24h",
        "operations": f"{base}/operation/",
        "holds": f"{base}/hold/",
        "audit": f"{base}/operatoraction/",
        "health": f"{base}/job/health/",
    }


def _ask(statement: str, **values: Any) -> list[Any]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return list(cursor.fetchall()) if cursor.description else []


if __name__ == "__main__":
    sys.exit(main())
