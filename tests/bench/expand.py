"""`python -m tests.bench.expand`: what it costs to expand definitions that fire at the same minute, on one core.

Durable commits. The rules are drawn from as many different expressions and zones as `--rules` says. (`manage.py benchmark
cron` has real dispatchers do it, and compares a pass beside few definitions with one beside many.)
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import sys
import time
from datetime import timedelta
from typing import Any

import django
from django.core.management import call_command

from scheduler_project import embedded, env
from scheduler_project.scratch import new_name, scratch, with_database

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Sydney", "America/Sao_Paulo"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.expand", description=__doc__)
    parser.add_argument("--due", type=int, default=100_000)
    parser.add_argument("--rules", type=int, default=20_000)
    asked = parser.parse_args()
    server = os.environ.get("DATABASE_URL", "").strip() or embedded.ensure()
    os.environ["DATABASE_URL"] = server
    home, name = env.database("DATABASE_URL")["NAME"], new_name("punctual_expand_")
    os.environ.update(
        DATABASE_URL=with_database(server, name),
        DJANGO_SETTINGS_MODULE="scheduler_project.settings",
        SCHEDULER_APPS="tests.handlers",
        SECRET_KEY=secrets.token_urlsafe(50),
        ALLOWED_HOSTS="localhost",
        LOG_LEVEL="ERROR",
    )
    django.setup()
    with scratch(name, home, sweep=None):
        call_command("migrate", verbosity=0)
        call_command("managepartitions", "ensure", verbosity=0, stdout=sys.stderr)
        report = _expansion(asked.due, asked.rules)
    print(json.dumps(report, indent=2))
    return 0


def _expansion(count: int, rules: int) -> dict[str, Any]:
    """All fire at one minute, each day; the minute is the next but one."""
    from dispatch.ticker import BATCH, Ticker
    from jobs import clock, db
    from jobs.models import CronDefinition, CronTick, Job
    from jobs.tenants import tenant_ids

    now = clock.now().replace(second=0, microsecond=0)
    slot, tenant = now + timedelta(minutes=2), tenant_ids(["bench"])["bench"]
    drawn = random.Random(1)
    texts = []
    for _ in range(rules):
        minutes = sorted({slot.minute, *drawn.sample(range(60), 3)})
        hours = "*" if drawn.random() < 0.5 else ",".join(map(str, range(24)))
        texts.append((f"{','.join(map(str, minutes))} {hours} * * *", drawn.choice(ZONES)))
    made = []
    for n in range(count):
        expression, zone = texts[n % rules]
        made.append(
            CronDefinition(name=f"d{n}", tenant_id=tenant, expression=expression, timezone=zone, job_type="test.noop",
                           last_slot=now + timedelta(minutes=1, seconds=30), payload={"n": n})
        )  # fmt: skip
    began = time.perf_counter()
    for start in range(0, count, 5000):
        CronDefinition.objects.bulk_create(made[start : start + 5000])
    created = time.perf_counter() - began
    work = Ticker()
    work._synced = True
    with db.connect(name="punctual bench") as connection:
        wall, cpu, server = time.perf_counter(), time.process_time(), _server_cpu(connection)
        while work.run_once(connection, now + timedelta(seconds=1)) == BATCH:
            pass
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        server = _server_cpu(connection) - server
    jobs = Job.objects.filter(due_at=slot).count()
    ticks = CronTick.objects.filter(slot=slot).count()
    return {
        "definitions": count, "different rules": rules, "jobs": jobs, "ticks": ticks,
        "create ms each": round(created / count * 1000, 3), "seconds": round(wall, 1),
        "ms each": round(wall / count * 1000, 3), "ticker CPU ms each": round(cpu / count * 1000, 3),
        "server CPU ms each": round(server / count * 1000, 3),
    }  # fmt: skip


def _server_cpu(connection: Any) -> float:
    """Seconds of CPU of the session's server process."""
    with open(f"/proc/{connection.info.backend_pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
