"""The client: schedules numbered jobs and notes what it was promised. In the end the ledger is asked, never the
scheduler's tables."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from jobs.ids import due_of
from jobs.invariant import check
from jobs.models import Job
from jobs.newjob import NewJob
from scheduler_project.benchmark.fleet import Fleet
from scheduler_project.benchmark.ledger import Ledger
from scheduler_project.benchmark.offset import clock_offset
from scheduler_project.benchmark.work.tasks import NOOP, SLEEP

Connection = psycopg.Connection[Any]

TENANTS = 50
LOOK = 0.005
STALLED = 60.0
"""Seconds without any run after which nothing more is expected."""
TOLD = 5.0


def payload(number: int) -> dict[str, Any]:
    """About 100 bytes of JSON."""
    return {"number": number, "template": "welcome", "text": "y" * 55}


class Client:
    def __init__(self, connection: Connection, ledger: Ledger, say: Callable[[str], None]) -> None:
        self.connection, self.ledger, self._say = connection, ledger, say
        self._offset = clock_offset(connection)
        self._dues = array("d")
        """The promise, by job number."""

    def now(self) -> float:
        """The database's time."""
        return time.time() + self._offset

    @property
    def next_number(self) -> int:
        return len(self._dues)

    def new_jobs(self, dues: Iterable[datetime]) -> list[NewJob]:
        """Unscheduled yet, with the next numbers."""
        return [
            NewJob(job_type=NOOP, payload=payload(n), tenant=f"tenant {n % TENANTS}", due_at=due_at)
            for n, due_at in enumerate(dues, self.next_number)
        ]

    def schedule(self, dues: Iterable[datetime]) -> range:
        """Schedule a job for each of these in one transaction; returns their numbers."""
        return self._schedule(self.new_jobs(dues))

    def schedule_sleeps(self, due: float, sleeps: Iterable[tuple[str, float]]) -> range:
        """The same for jobs of these tenants that sleep for so many seconds, all due at the same instant."""
        due_at = datetime.fromtimestamp(due, UTC)
        return self._schedule(
            [
                NewJob(
                    job_type=SLEEP, payload=payload(n) | {"seconds": seconds}, tenant=tenant, due_at=due_at
                )
                for n, (tenant, seconds) in enumerate(sleeps, self.next_number)
            ]
        )

    def schedule_elsewhere(self, queue: str, tenants: Iterable[str]) -> range:
        """Jobs of these tenants, due now, in a queue that no worker serves."""
        due_at = datetime.fromtimestamp(self.now(), UTC)
        return self._schedule(
            [
                NewJob(job_type=NOOP, payload=payload(n), tenant=tenant, queue=queue, due_at=due_at)
                for n, tenant in enumerate(tenants, self.next_number)
            ]
        )

    def _schedule(self, new: list[NewJob]) -> range:
        ids = Job.objects.schedule_many(new)
        return self.expect(due_of(job_id).timestamp() for job_id, _ in ids)

    def expect(self, dues: Iterable[float]) -> range:
        """The next numbers, for jobs that are promised to run at these times; they are in their payloads."""
        first = self.next_number
        self._dues.extend(dues)
        return range(first, self.next_number)

    def due(self, number: int) -> float:
        return self._dues[number]

    def warm_up(self, count: int, fleet: Fleet) -> None:
        """A few jobs that are due now: processes that have never run one open their connections at the first."""
        self.wait(self.schedule([datetime.fromtimestamp(self.now(), UTC)] * count), fleet)

    def wait(self, numbers: range, fleet: Fleet) -> float:
        """Wait until all of these have run and no job that is due is unfinished; returns the database's time then.
        Gives up when nothing happens any more: what has not run is lost."""
        total, told, moved = len(numbers), time.monotonic(), time.monotonic()
        left, last = total, max(self._dues[numbers.start : numbers.stop])
        while (now_left := self.ledger.left(numbers)) or not self._are_settled():
            now = time.monotonic()
            if now_left < left or self.now() < last:
                left, moved = now_left, now
            if now - moved > STALLED:
                self._say(f"{left:,} of {total:,} have not run, and nothing happens: given up")
                break
            if now - told > TOLD:
                told = now
                fleet.check()
                self._say(f"{total - left:,} of {total:,} ran")
            time.sleep(LOOK)
        return self.now()

    def lateness(self, numbers: Iterable[int]) -> list[float]:
        """Seconds between due and start of those that ran, in rising order."""
        return sorted(
            self.ledger.start(n) + self._offset - self._dues[n] for n in numbers if self.ledger.count(n)
        )

    def judge(self) -> dict[str, int]:
        """Of all jobs so far. `lost`: never ran, or checkjobs found something wrong."""
        numbers = range(self.next_number)
        breaches = check(span=timedelta(days=1)).breaches
        for breach in breaches[:10]:
            self._say(breach)
        return {
            "early": sum(late < 0 for late in self.lateness(numbers)),
            "lost": self.ledger.left(numbers) + len(breaches),
            "twice": sum(self.ledger.count(n) > 1 for n in numbers),
        }

    def _are_settled(self) -> bool:
        row = self.connection.execute(
            "SELECT NOT EXISTS (SELECT FROM jobs_queueentry WHERE run_at <= now())"
        ).fetchone()
        return bool(row and row[0])
