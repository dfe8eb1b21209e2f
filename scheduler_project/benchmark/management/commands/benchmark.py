"""Measure this scheduler under load, each figure beside its floor, in a database of its own that is dropped at the end."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from jobs.errors import SchedulerError
from jobs.management.arguments import positive
from scheduler_project.benchmark.report import Report, summary
from scheduler_project.children import STOPPING

ALONE = ("schedule", "burst", "steady", "precision", "parked", "wal", "dispatchers", "pinned")
FAIR = ("fairness", "limits", "slow")
GROUPS = {"all": ALONE, "fair": FAIR}
"""Each about a quarter of an hour, or less."""
LONG = ("cron", "soak")
"""In none of the groups."""
NAMES = ALONE + FAIR + LONG
STOPPED = 130


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workload", choices=[*NAMES, *GROUPS])
        parser.add_argument("--jobs", type=positive, help="how many, instead of the workload's own number")
        parser.add_argument(
            "--json", dest="file", type=Path, metavar="FILE", help="write what was found there as well"
        )
        parser.add_argument("--full", action="store_true", help="parked: ten times as many rows")

    def handle(self, *args: Any, workload: str, file: Path | None, **options: Any) -> None:
        self._begun = time.monotonic()
        reports: list[Report] = []
        failures: list[str] = []
        with _interruptible():
            for name in GROUPS.get(workload, [workload]):
                self._name = name
                try:
                    reports.append(self._run(name, **options))
                except (SchedulerError, DatabaseError, psycopg.Error) as error:
                    failures.append(f"{name}: {str(error).strip()}")
                    continue
                except KeyboardInterrupt:
                    self.stderr.write("stopped")
                    sys.exit(STOPPED)
                self.stdout.write("\n".join(reports[-1].lines()))
                if file:
                    _write(file, reports, as_list=workload in GROUPS)
        if workload in GROUPS:
            self.stdout.write("\n".join(summary(reports)))
        failures += [
            f"{report.workload}: jobs were lost or early" for report in reports if not report.is_sound
        ]
        if failures:
            raise CommandError("\n".join(failures))

    def _run(self, name: str, *, jobs: int | None, full: bool, **options: Any) -> Report:
        # Not above: they register handlers, in this process and its children alone.
        from scheduler_project.benchmark.stage import stage
        from scheduler_project.benchmark.workloads import WORKLOADS

        with (
            tempfile.TemporaryDirectory(prefix="punctual-benchmark-") as folder,
            stage(jobs, Path(folder), self._say, full=full) as on,
        ):
            return WORKLOADS[name](on)

    def _say(self, message: str) -> None:
        self.stderr.write(f"{time.monotonic() - self._begun:6.1f} s  {self._name}: {message}", str)


def _write(file: Path, reports: list[Report], *, as_list: bool) -> None:
    found = [report.as_json() for report in reports]
    file.write_text(json.dumps(found if as_list else found[0], indent=2) + "\n")


@contextmanager
def _interruptible() -> Iterator[None]:
    """Signals that mean stop do so once, wherever we are; what is then tidied up is not interrupted."""

    def stop(number: int, frame: FrameType | None) -> None:
        for each in STOPPING:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
