"""The database dies under a dispatcher, a worker and a client: whatever was promised before is done after."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from django.db import DatabaseError, connections
from pytest_django import Settings

from jobs import db
from jobs.invariant import check
from jobs.models import Job, Outcome
from scheduler_project import embedded
from tests import commands as commands_of_tests
from tests.commands import Ledger
from tests.process.own_server import OWN, crash, start_again, stop_at_once
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
DAY = timedelta(days=1)
LOST = 'logger=dispatch.worker event="database lost"'
ASLEEP = (
    "SELECT FROM pg_stat_activity WHERE application_name LIKE 'punctual worker %' AND state = 'idle' "
    "AND state_change < clock_timestamp() - interval '300 ms'"
)


class Client:
    """Schedules without end and notes the ids of what schedule() returned, whatever happens to the database."""

    def __init__(self, ledger: Ledger) -> None:
        self.promised: list[UUID] = []
        self._payload = {"ledger": str(ledger)}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self._thread.start()
        yield
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            try:
                delay = timedelta(seconds=5.5 if len(self.promised) % 3 == 0 else 0)
                job = Job.objects.db_manager(OWN).schedule("test.ledger", self._payload, delay=delay)
            except DatabaseError:
                connections[OWN].close()
            else:
                self.promised.append(job.id)
        connections.close_all()


FAULTS: list[Callable[[Path], None]] = [crash, stop_at_once, crash]


def test_db_03_nothing_is_lost_or_stuck_when_the_database_is_killed_and_stopped_at_once(
    data: Path, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    client = Client(ledger)
    environment = commands_of_tests.environment(embedded.uri(data))
    with commands_of_tests.commands(environment, tmp_path) as started:
        dispatcher, worker = started.dispatcher(), started.worker(processes=1, threads=4)
        with client.at_work():
            for fault in FAULTS:
                enough = ledger.count("end") + 10
                wait_until(lambda enough=enough: ledger.count("end") > enough, what="work")  # type: ignore[misc]
                fault(data)
                embedded.start(data, durable=True)
            enough = ledger.count("end") + 10
            wait_until(lambda: ledger.count("end") > enough, what="work after the last start")
        connections[OWN].close()  # from before the first fault
        promised = set(client.promised)
        wait_until(lambda: promised <= ledger.ids("end"), what="the end of all that was promised")
        wait_until(lambda: set(check(OWN, span=DAY).counts) <= {"completed"}, what="that nothing is stuck")
        assert (dispatcher.process.poll(), worker.process.poll()) == (None, None)
    findings = check(OWN, span=DAY)
    assert findings.breaches == []
    # A job whose schedule() was cut off may exist as well; none that was promised may lack.
    assert findings.counts["completed"] >= len(promised)
    ended = Outcome.objects.using(OWN).filter(pk__in=promised, state="completed")
    assert ended.count() == len(promised)


def test_db_01_after_each_restart_a_hint_wakes_the_worker_again(
    data: Path, tmp_path: Path, settings: Settings
) -> None:
    """Its polls are ten minutes apart, and its lease is as long, so that no other child takes over: what starts a job is
    the hint of its client or, for a timer, that of the dispatcher."""
    settings.SCHEDULER = {"look_ahead": 0.3, "idle_poll": 0.1, "period": 0.1}  # due in a second: a timer
    ledger = Ledger(tmp_path / "ledger")

    def asleep() -> bool:
        with db.connect(OWN) as connection:
            return connection.execute(ASLEEP).fetchone() is not None

    with commands_of_tests.commands(commands_of_tests.environment(embedded.uri(data)), tmp_path) as started:
        dispatcher = started.dispatcher()
        worker = started.worker(SCHEDULER_IDLE_POLL="600", SCHEDULER_LOOK_AHEAD="1200", SCHEDULER_LEASE="600")
        for delay in (timedelta(), timedelta(seconds=1)):
            wait_until(asleep, what="a worker that sleeps")
            stop_at_once(data)
            worker.says(LOST, worker.log.count(LOST) + 3)  # it is refused a few times
            start_again(data)
            wait_until(asleep, what="a worker that sleeps again")
            job = Job.objects.db_manager(OWN).schedule("test.ledger", {"ledger": str(ledger)}, delay=delay)
            wait_until(lambda job=job: ledger.count("end", job.id), what="its run")  # type: ignore[misc]
        assert {event.pid for event in ledger.events} == set(worker.children)
        assert (dispatcher.process.poll(), dispatcher.errors + worker.errors) == (None, [])
