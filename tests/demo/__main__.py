"""`make demo`: thousands of real jobs on a real PostgreSQL, two processes killed in the middle, nothing lost."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

import django
import psycopg
from django.core.management import CommandError
from django.db import Error

from jobs.errors import SchedulerError
from scheduler_project import embedded, env, scratch
from scheduler_project.children import stop_signals
from tests.demo import environment
from tests.demo.screen import Screen

STOPPED = 130


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.demo", description=__doc__)
    parser.add_argument("--jobs", type=int, default=3000, help="how many (default: 3000)")
    parser.add_argument(
        "--seconds", type=float, default=15.0, help="within which they come due (default: 15)"
    )
    parser.add_argument("--keep", action="store_true", help="keep the ledger, the log and the mails")
    options = parser.parse_args()
    if options.jobs < 2 or options.seconds < 1:
        parser.error("at least 2 jobs and 1 second")
    screen = Screen()
    folder = Path(tempfile.mkdtemp(prefix="punctual-demo-"))
    code = 1
    with stop_signals() as stop:
        try:
            code = run(screen, stop, folder, options.jobs, options.seconds)
        except (SchedulerError, CommandError, Error, psycopg.Error) as error:
            screen.line("stopped" if stop.is_set() else f"demo: {str(error).strip()}")
            code = STOPPED if stop.is_set() else 1
        finally:
            if (options.keep or code == 1) and any(folder.iterdir()):
                screen.line(f"The log, the ledger and the mails of this run are in {folder}")
            else:
                shutil.rmtree(folder)
    return code


def run(screen: Screen, stop: threading.Event, folder: Path, count: int, seconds: float) -> int:
    is_our_server = not os.environ.get("DATABASE_URL", "").strip()
    screen.chapter("PostgreSQL", "A real server, and in it a new database for this demo.")
    server = os.environ.get("DIRECT_DATABASE_URL", "").strip() or embedded.ensure()
    os.environ["DATABASE_URL"] = server
    home = env.database("DATABASE_URL")["NAME"]
    name = scratch.new_name(environment.DATABASES)
    environment.enter(server, name, folder)
    django.setup()

    from tests.demo.story import tell  # needs the apps

    with scratch.scratch(name, home, sweep=environment.DATABASES if is_our_server else None):
        code = tell(screen, stop, folder, count, seconds)
    if is_our_server:
        screen.line(
            "\nPostgreSQL still runs: `make stop` ends it, `make run` starts everything with its web console."
        )
    return code


if __name__ == "__main__":
    sys.exit(main())
