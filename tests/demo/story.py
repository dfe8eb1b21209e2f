"""The story: start, schedule, kill, replace, wait for quiet, judge."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from django.core.management import call_command
from django.db.models import QuerySet

from jobs.errors import SchedulerError
from jobs.models import QueueEntry, Timer
from tests.demo import ending
from tests.demo.environment import LEASE, LEDGER, PROCESSES
from tests.demo.fleet import Fleet
from tests.demo.ledger import END, ERROR, START, Ledger
from tests.demo.receiver import receiver
from tests.demo.screen import Screen
from tests.demo.work import Client, Crons

STARTING = 60.0
"""Seconds that the processes have to reach their loops."""
KILL_AT = 0.5
"""Share of the time in which jobs come due."""
BUSY = 3.0
"""Seconds to wait for a worker that is in the middle of something."""
REPLACED_AFTER = 3.0
PATIENCE = 40.0
"""Seconds after the last due time until the demo no longer waits for quiet."""
LOOK = 0.25


class CutShort(SchedulerError):
    """The story cannot go on, or somebody asked the demo to stop."""


def tell(screen: Screen, stop: threading.Event, folder: Path, count: int, seconds: float) -> int:
    """The exit code: 0 only when everything ended as it should."""
    screen.chapter("migrate", "The tables, with a partition for each day.")
    call_command("migrate", interactive=False, verbosity=0)
    crons = Crons()
    fleet = Fleet(folder / "log")
    with receiver() as other_end:
        client = Client(count, seconds, other_end.url)
        story = Story(screen, stop, fleet, client, Ledger(folder / LEDGER))
        try:
            story.start_processes()
            story.schedule()
            story.watch()
            story.leave()
        finally:
            fleet.stop(patience=5.0)
    return ending.judge(screen, client, crons, story.ledger)


class Story:
    def __init__(
        self, screen: Screen, stop: threading.Event, fleet: Fleet, client: Client, ledger: Ledger
    ) -> None:
        self.screen, self.stop, self.fleet, self.client, self.ledger = screen, stop, fleet, client, ledger

    def start_processes(self) -> None:
        self.screen.chapter(
            "processes",
            f"{PROCESSES} dispatchers, which move what comes due into its queue, and {PROCESSES} workers, which run "
            "it. None of them is a leader: each can do what its twin does.",
        )
        self.fleet.add_all()
        end = time.monotonic() + STARTING
        while not self.fleet.are_ready():
            self._look()
            if time.monotonic() > end:
                raise CutShort(f"the processes did not start within {STARTING:.0f} s")

    def schedule(self) -> None:
        self.client.schedule()
        self.screen.chapter(
            "schedule",
            f"{self.client.count:,} jobs of three tenants: emails, webhooks, a management command, calls of a service "
            f"that is down at first. Most come due within {self.client.seconds:.0f} s. One is poison: it kills the "
            "process that runs it. We note each id that schedule() returns: that is the promise.",
        )

    def watch(self) -> None:
        """Until nothing that was due is left to do."""
        begun = time.monotonic()
        kill_at, all_due = begun + KILL_AT * self.client.seconds, begun + self.client.seconds
        self._go_on(kill_at)
        self._go_on(kill_at + BUSY, until=lambda: self._busiest()[1] > 0)
        self._kill()
        self._go_on(time.monotonic() + REPLACED_AFTER)
        self._replace()
        self._go_on(all_due)
        self._go_on(all_due + PATIENCE, until=self._is_quiet)
        for entry in self._left()[:5]:
            held = (
                f"held by process {entry.process_id}" if entry.process_id else f"waits until {entry.run_at}"
            )
            self.screen.line(f"still there: {entry.job_type} {entry.job_id}, attempt {entry.attempt}, {held}")

    def leave(self) -> None:
        self.screen.chapter("SIGTERM", "All is done. The processes are asked to end, as in a deployment.")
        self.fleet.stop(patience=15.0)

    def _kill(self) -> None:
        number, running = self._busiest()
        self.fleet.kill("worker", number)
        self.fleet.kill("dispatcher", number)
        self.screen.chapter(
            "kill -9",
            f"Worker {number}, in the middle of {running} jobs, and dispatcher {number} are gone without a goodbye. What "
            f"the worker held is its own until its lease ends, {LEASE} s from now at most; then the others take it over.",
        )

    def _busiest(self) -> tuple[int, int]:
        """A worker and how many jobs it is running, by the ledger."""
        lines = self.ledger.read()
        over = {line.run for line in lines if line.event != START}
        counts = Counter(line.pid for line in lines if line.run not in over)
        for pid, count in counts.most_common():
            if number := self.fleet.worker_of(pid):
                return number, count
        return 1, 0

    def _replace(self) -> None:
        self.screen.chapter("replace", "Whatever watches over the processes (systemd, say) starts new ones.")
        for kind in ("dispatcher", "worker"):
            self.fleet.add(kind, PROCESSES + 1)

    def _is_quiet(self) -> bool:
        begun, end = self.client.begun, self.client.last_due
        return (
            not Timer.objects.filter(due_at__gte=begun, due_at__lte=end).exists()
            and not self._left().exists()
        )

    def _left(self) -> QuerySet[QueueEntry]:
        return QueueEntry.objects.filter(due_at__lte=self.client.last_due)

    def _progress(self) -> str:
        lines = self.ledger.read()
        finished = len({line.job_id for line in lines if line.event == END} & self.client.ids)
        failures = sum(line.event == ERROR for line in lines)
        bar = "█" * min(20, finished * 20 // self.client.count)
        return f"{bar:░<20} {finished:,} of {self.client.count:,} finished, {failures:,} attempts failed"

    def _go_on(self, end: float, *, until: Callable[[], bool] = lambda: False) -> None:
        """Show how things go on up to this time, or until something is so."""
        while time.monotonic() < end and not until():
            self._look()
            self.screen.progress(self._progress())

    def _look(self) -> None:
        """A short while; the end of the story when a process left or somebody asked us to."""
        if failed := self.fleet.ended():
            raise CutShort(f"{failed}, and nobody had asked it to")
        if self.stop.wait(LOOK):
            raise CutShort("somebody asked the demo to stop")
