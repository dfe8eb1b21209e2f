"""The story: start, schedule, kill, replace, wait for quiet, judge."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from django.core.management import call_command

from jobs.errors import SchedulerError
from jobs.models import QueueEntry, Timer
from tests.demo import ending
from tests.demo.environment import LEASE, PROCESSES
from tests.demo.fleet import Fleet
from tests.demo.ledger import END, ERROR, NAME, Ledger
from tests.demo.receiver import receiver
from tests.demo.screen import Screen
from tests.demo.work import Client, Crons

STARTING = 60.0
"""Seconds that the processes have to reach their loops."""
KILL_AT, REPLACED_AFTER = 0.4, 3.0
"""Share of the time in which jobs come due; seconds."""
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
        story = Story(screen, stop, fleet, client, Ledger(folder / NAME))
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
        self._wait(self.fleet.are_ready, STARTING, "the processes to start")

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
        kill_at = begun + KILL_AT * self.client.seconds
        acts = [(kill_at, self._kill), (kill_at + REPLACED_AFTER, self._replace)]
        for _ in self._looks(begun + self.client.seconds + PATIENCE):
            if acts and time.monotonic() >= acts[0][0]:
                acts.pop(0)[1]()
            elif not acts and time.monotonic() > begun + self.client.seconds and self._is_quiet():
                return
            self.screen.progress(self._progress())
        for left in [*QueueEntry.objects.filter(due_at__lte=self.client.last_due).values()[:5]]:
            self.screen.line(f"DEBUG left: {left}")
        for left in [*Timer.objects.filter(due_at__lte=self.client.last_due).values()[:5]]:
            self.screen.line(f"DEBUG left timer: {left}")

    def leave(self) -> None:
        self.screen.chapter("SIGTERM", "All is done. The processes are asked to end, as in a deployment.")
        self.fleet.stop(patience=15.0)

    def _kill(self) -> None:
        self.screen.chapter(
            "kill -9",
            "A worker and a dispatcher die in the middle of their work, without a goodbye. What the worker was running "
            f"is its own until its lease ends, {LEASE} s from now at most; then it is taken over.",
        )
        self.fleet.kill("worker", 1)
        self.fleet.kill("dispatcher", 1)

    def _replace(self) -> None:
        self.screen.chapter("replace", "Whatever watches over the processes (systemd, say) starts new ones.")
        for kind in ("dispatcher", "worker"):
            self.fleet.add(kind, PROCESSES + 1)

    def _is_quiet(self) -> bool:
        begun, end = self.client.begun, self.client.last_due
        waiting = Timer.objects.filter(due_at__gte=begun, due_at__lte=end)
        return not waiting.exists() and not QueueEntry.objects.filter(due_at__lte=end).exists()

    def _progress(self) -> str:
        lines = self.ledger.read()
        finished = len({line.job_id for line in lines if line.event == END})
        failures = sum(line.event == ERROR for line in lines)
        bar = "█" * min(20, finished * 20 // self.client.count)
        return f"{bar:░<20} {finished:,} of {self.client.count:,} finished, {failures:,} attempts failed"

    def _wait(self, ready: Callable[[], bool], seconds: float, what: str) -> None:
        for _ in self._looks(time.monotonic() + seconds):
            if ready():
                return
        raise CutShort(f"waited {seconds:.0f} s for {what}")

    def _looks(self, until: float) -> Iterator[None]:
        while time.monotonic() < until:
            if failed := self.fleet.ended():
                raise CutShort(f"{failed}, and nobody had asked it to")
            if self.stop.wait(LOOK):
                raise CutShort("somebody asked the demo to stop")
            yield
