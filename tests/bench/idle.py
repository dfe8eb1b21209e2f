"""`python -m tests.bench.idle`: what processes cost that have nothing to do, as a share of one core."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import tempfile
import time
from pathlib import Path

import django

from scheduler_project import embedded


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.idle", description=__doc__)
    parser.add_argument("--dispatchers", type=int, default=20)
    parser.add_argument("--processes", type=int, default=20, help="of the worker")
    parser.add_argument("--seconds", type=float, default=30.0)
    asked = parser.parse_args()
    os.environ["DATABASE_URL"] = os.environ.get("DATABASE_URL", "").strip() or embedded.ensure()
    os.environ.update(
        DJANGO_SETTINGS_MODULE="scheduler_project.settings", SCHEDULER_APPS="scheduler_project.benchmark.work"
    )
    os.environ.setdefault("SECRET_KEY", secrets.token_urlsafe(50))
    os.environ.setdefault("ALLOWED_HOSTS", "localhost")
    os.environ["LOG_LEVEL"] = "ERROR"
    django.setup()
    print(json.dumps(_idle(asked.dispatchers, asked.processes, asked.seconds), indent=2))
    return 0


def _idle(dispatchers: int, processes: int, seconds: float) -> dict[str, float]:
    from scheduler_project.benchmark.fleet import fleet
    from scheduler_project.benchmark.meter import Meter
    from scheduler_project.benchmark.stage import stage

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    with (
        tempfile.TemporaryDirectory() as folder,
        stage(None, Path(folder), say, full=False) as place,
        fleet(
            place.connection, Path(folder) / "log", dispatchers=dispatchers, processes=processes
        ) as running,
    ):
        meter = Meter(place.connection, running.pids)
        before, began = meter.read(), time.monotonic()
        time.sleep(seconds)
        running.check()
        used, took = meter.read() - before, time.monotonic() - began
    return {
        "server_percent_of_a_core": round(100 * (used.server or 0) / took, 2),
        "python_percent_of_a_core": round(100 * (used.python or 0) / took, 2),
        "commits_a_second": round(used.commits / took, 1),
        "wal_bytes_a_second": round(used.wal / took),
    }


if __name__ == "__main__":
    sys.exit(main())
