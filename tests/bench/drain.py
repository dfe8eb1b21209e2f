"""`make bench`: how fast 50,000 no-op jobs due at one instant are drained, beside a bare loop in the same run.

The floor is two connections that delete batches of 500 from a queue-shaped table with SKIP LOCKED and do nothing else.
One `runworker` with its default two processes, one `rundispatcher`, durable commits, no ANALYZE.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import threading
import time
from datetime import timedelta
from typing import Any

import django
from django.core.management import call_command

from scheduler_project import embedded, env
from scheduler_project.children import Children

TENANTS = 50
LEAD = timedelta(seconds=15)
PAYLOAD = {"user": 1, "template": "welcome", "text": "y" * 60}

_FLOOR_TABLE = (
    "CREATE TABLE floor AS SELECT * FROM jobs_queueentry WHERE false; "
    "ALTER TABLE floor ADD PRIMARY KEY (job_id); CREATE INDEX ON floor (queue, tenant_id, priority, run_at, job_id); "
    "INSERT INTO floor (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, max_attempts, crashes, "
    "enqueued_at, cancel_requested) SELECT gen_random_uuid(), now(), now(), n %% 50, 'q', 't', 0, 0, 20, 0, now(), false "
    "FROM generate_series(1, %s) n"
)
_FLOOR = (
    "DELETE FROM floor WHERE ctid = ANY(ARRAY(SELECT ctid FROM floor ORDER BY queue, tenant_id, priority, run_at, job_id "
    "LIMIT 500 FOR UPDATE SKIP LOCKED))"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.drain", description=__doc__)
    parser.add_argument("--jobs", type=int, default=50_000)
    count = parser.parse_args().jobs
    server = os.environ.get("DATABASE_URL", "").strip() or embedded.ensure()
    os.environ["DATABASE_URL"] = server
    from tests.demo.database import new_name, scratch
    from tests.demo.environment import with_database

    home, name = env.database("DATABASE_URL")["NAME"], new_name()
    os.environ.update(
        DATABASE_URL=with_database(server, name),
        DJANGO_SETTINGS_MODULE="scheduler_project.settings",
        SCHEDULER_APPS="tests.handlers",
        SECRET_KEY=secrets.token_urlsafe(50),
        ALLOWED_HOSTS="localhost",
        LOG_LEVEL="WARNING",
    )
    django.setup()
    with scratch(name, home, sweep=False):
        call_command("migrate", verbosity=0)
        call_command("managepartitions", "ensure", verbosity=0)
        figures = {"jobs": count, **floor(count), **drain(count)}
    figures["ratio"] = round(figures["jobs_per_second"] / figures["floor_per_second"], 3)
    print(json.dumps(figures, indent=2))
    return 0 if figures["done"] == count and figures["early"] == 0 else 1


def floor(count: int) -> dict[str, Any]:
    from jobs import db

    with db.connect() as connection:
        create, _, insert = _FLOOR_TABLE.rpartition("; ")
        connection.execute(create)
        connection.execute(insert, [count])

    def work() -> None:
        with db.connect() as mine:
            while mine.execute(_FLOOR, prepare=True).rowcount:
                pass

    threads = [threading.Thread(target=work) for _ in range(2)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"floor_per_second": round(count / (time.monotonic() - begun))}


def drain(count: int) -> dict[str, Any]:
    from jobs import clock, db
    from jobs.models import Job
    from jobs.newjob import NewJob

    processes = Children()
    processes.start("dispatcher", ["manage.py", "rundispatcher"])
    processes.start("worker", ["manage.py", "runworker", "--queues", "test.noop"])
    try:
        with db.connect() as connection:
            _until(
                connection,
                "SELECT count(*) >= 2 FROM pg_stat_activity WHERE application_name LIKE 'punctual worker %%'",
            )
            begun = time.monotonic()
            due_at = clock.now() + LEAD
            ids = Job.objects.schedule_many(
                NewJob(job_type="test.noop", payload=PAYLOAD, tenant=f"t{n % TENANTS}", due_at=due_at)
                for n in range(count)
            )
            scheduled = time.monotonic() - begun
            due_at = Job.objects.get(pk=ids[0][0]).due_at
            _until(
                connection,
                "SELECT NOT EXISTS (SELECT FROM jobs_timer) AND NOT EXISTS (SELECT FROM jobs_queueentry)",
            )
            row = connection.execute(
                "SELECT count(*), extract(epoch FROM max(finished_at) - %(due)s), "
                "extract(epoch FROM min(started_at) - %(due)s), "
                "extract(epoch FROM percentile_disc(0.99) WITHIN GROUP (ORDER BY started_at) - %(due)s), "
                "count(*) FILTER (WHERE started_at < %(due)s) FROM jobs_outcome WHERE state = 'completed'",
                {"due": due_at},
            ).fetchone()
    finally:
        processes.stop(40)
    done, seconds, first, p99, early = row or (0, 1, 0, 0, 0)
    return {
        "scheduled_per_second": round(count / scheduled),
        "done": done,
        "jobs_per_second": round(done / float(seconds)),
        "first_start_ms": round(float(first) * 1000),
        "p99_start_ms": round(float(p99) * 1000),
        "early": early,
    }


def _until(connection: Any, question: str) -> None:
    end = time.monotonic() + 300
    while not connection.execute(question).fetchone()[0]:
        if time.monotonic() > end:
            raise SystemExit(f"waited 300 s for: {question}")
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
