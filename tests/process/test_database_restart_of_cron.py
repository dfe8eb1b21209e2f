"""The database is stopped at once in the middle of an expansion: the dispatcher goes on by itself, and every slot is told
of once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jobs import clock, db
from jobs.invariant import check
from jobs.models import CronDefinition, CronTick, Job
from jobs.reconcile import reconcile
from jobs.tenants import tenant_ids
from scheduler_project import embedded
from tests import commands as commands_of_tests
from tests.process.own_server import OWN, crash, start_again, stop_at_once
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
Connection = psycopg.Connection[Any]

EACH = 300
"""Definitions of a round: two batches of a ticker."""
LEDGER = "jobs_crontick"
FAULTS: list[tuple[str, Callable[[Path], None]]] = [
    (LEDGER, stop_at_once), ("jobs_job", stop_at_once), ("jobs_timer", crash), ("jobs_crondefinition", stop_at_once),
]  # fmt: skip
"""What the ticker is about to write when the database goes, and how it goes."""


def define(number: int) -> None:
    tenant_id = tenant_ids(["default"], OWN)["default"]
    CronDefinition.objects.using(OWN).bulk_create(
        CronDefinition(
            name=f"{number} {n}", tenant_id=tenant_id, expression="* * * * *", job_type="test.noop",
            overlap="skip" if n % 4 == 0 else "allow_all",
        )
        for n in range(EACH)
    )  # fmt: skip


def lock(table: str) -> Connection:
    """Nobody writes into it until this connection is closed."""
    connection = db.connect(OWN, name="punctual test")
    connection.execute("BEGIN")
    connection.execute(f"LOCK TABLE {table} IN SHARE MODE")
    return connection


def wait_for_the_ticker_at(connection: Connection) -> None:
    waits = "SELECT FROM pg_stat_activity WHERE application_name = 'punctual tick' AND %s = ANY(pg_blocking_pids(pid))"
    pid = connection.info.backend_pid
    wait_until(lambda: connection.execute(waits, [pid]).fetchone() is not None, what="a ticker that writes")


def is_expanded() -> bool:
    definitions = CronDefinition.objects.using(OWN)
    return definitions.exists() and not definitions.filter(next_slot=None).exists()


def test_mi_07_a_dispatcher_expands_on_after_the_database_was_stopped_in_the_middle(
    data: Path, tmp_path: Path
) -> None:
    begun = clock.now(OWN)
    with commands_of_tests.commands(commands_of_tests.environment(embedded.uri(data)), tmp_path) as started:
        dispatcher = started.dispatcher()
        for number, (table, fault) in enumerate(FAULTS):
            ledger = lock(LEDGER)
            define(number)
            wait_for_the_ticker_at(ledger)  # it holds the definitions
            inner = ledger if table == LEDGER else lock(table)
            if inner is not ledger:
                ledger.close()
                wait_for_the_ticker_at(inner)
            fault(data)
            inner.close()
            start_again(data)
            wait_until(is_expanded, what=f"the expansion that was cut off at {table}")
        assert (dispatcher.process.poll(), dispatcher.errors) == (None, [])
    found = reconcile(begun, OWN)
    assert found.breaches == []
    assert found.definitions == EACH * len(FAULTS)
    assert check(OWN).breaches == []
    runs = CronTick.objects.using(OWN).filter(slot__gt=begun, outcome__in=["fired", "late"]).count()
    assert Job.objects.using(OWN).filter(slot__gt=begun).count() == runs > EACH * len(FAULTS)
