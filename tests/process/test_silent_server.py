"""The database falls silent: connections carry nothing any more and nobody is told."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from django.db import connections

from jobs import operations
from jobs.models import Job, Operation, QueueEntry
from jobs.newjob import NewJob
from tests import commands as commands_of_tests
from tests.commands import Commands, Ledger
from tests.db.test_admin_tools import user_with
from tests.factories import schedule
from tests.racing import assert_sound, due_job
from tests.storm.proxy import Link, Proxy
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


class Way:
    """The commands' way to the database, which can be closed."""

    def __init__(self) -> None:
        parts = urlsplit(commands_of_tests.database_url())
        where = parse_qs(parts.query)
        self.proxy = Proxy()
        port = self.proxy.add("way", Path(where["host"][0]) / f".s.PGSQL.{where['port'][0]}")
        login = parts.netloc.rpartition("@")[0] or quote("postgres")
        self.url = f"postgresql://{login}@127.0.0.1:{port}{parts.path}"

    def swallow(self) -> None:
        self.proxy.tell("way", Link.swallow)

    def stall(self) -> None:
        self.proxy.tell("way", Link.stall)


@pytest.fixture
def way(transactional_db: None) -> Iterator[Way]:
    way = Way()
    yield way
    way.proxy.close()


@pytest.fixture
def beyond(way: Way, tmp_path: Path) -> Iterator[Commands]:
    """Commands beyond the way."""
    with commands_of_tests.commands(commands_of_tests.environment(way.url), tmp_path) as started:
        yield started


def test_st_05_a_worker_whose_connections_are_dead_connects_anew(
    way: Way, beyond: Commands, ledger: Ledger
) -> None:
    worker = beyond.worker("--queues", "q")
    first = due_job("test.ledger", {"ledger": str(ledger)}, queue="q")
    wait_until(lambda: ledger.count("end", first.id))
    way.swallow()
    second = due_job("test.ledger", {"ledger": str(ledger)}, queue="q")
    wait_until(lambda: ledger.count("end", second.id), what="a job after the silence")
    assert worker.process.poll() is None
    assert_sound()


def test_mi_07_a_dispatcher_whose_connections_are_dead_connects_anew(way: Way, beyond: Commands) -> None:
    dispatcher = beyond.dispatcher("--only", "dispatch")
    at_work = (
        "SELECT count(DISTINCT application_name) = 2 FROM pg_stat_activity WHERE state = 'idle' AND query !~ '^(SET|$)' "
        "AND application_name IN ('punctual dispatch', 'punctual heartbeat')"
    )
    with connections["default"].cursor() as cursor:
        wait_until(lambda: cursor.execute(at_work) or cursor.fetchone()[0], what="its two loops")
    way.swallow()
    dispatcher.says("the database is silent")
    job = schedule(delay=timedelta(seconds=8))
    wait_until(lambda: QueueEntry.objects.filter(pk=job.id).exists(), what="a dispatch after the silence")
    assert dispatcher.process.poll() is None


def test_mi_07_a_loop_that_works_on_djangos_connection_connects_anew(way: Way, beyond: Commands) -> None:
    """The bulk operations: their own connection is as dead as the loop's."""
    Job.objects.schedule_many([NewJob(job_type="test.noop", delay=timedelta(hours=1), group="g")] * 3)
    dispatcher = beyond.dispatcher("--only", "operate")
    boss = user_with("cancel_job", "bulk_job")
    first = operations.submit(boss, "cancel", "group:g due:now..+2h", "why")
    wait_until(lambda: Operation.objects.get(pk=first.pk).ended_at, what="the first operation")
    way.swallow()
    Job.objects.schedule_many([NewJob(job_type="test.noop", delay=timedelta(hours=1), group="h")] * 3)
    second = operations.submit(boss, "cancel", "group:h due:now..+2h", "why")
    wait_until(lambda: Operation.objects.get(pk=second.pk).ended_at, what="one after the silence")
    assert Operation.objects.get(pk=second.pk).changed == 3
    assert dispatcher.process.poll() is None


@pytest.mark.parametrize("command", ["worker", "dispatcher"])
def test_sh_03_at_sigterm_they_leave_although_the_database_is_silent(
    way: Way, beyond: Commands, command: str
) -> None:
    process = beyond.worker() if command == "worker" else beyond.dispatcher()
    way.stall()
    process.send(signal.SIGTERM)
    process.wait(60)
    assert process.process.returncode == 0
