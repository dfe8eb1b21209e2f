"""What a worker goes through: a body that starves its interpreter, a limit across a kill, long bodies, loops that fail."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from pathlib import Path

import pytest
from django.db import connections

from jobs.models import Outcome, Tenant
from tests.commands import Commands, Event, Ledger
from tests.racing import assert_sound, due_job
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

IN_TRANSACTION = (
    "SELECT application_name, state, query FROM pg_stat_activity WHERE application_name LIKE 'punctual worker %' "
    "AND datname = current_database() AND xact_start IS NOT NULL AND state <> 'active'"
)


def overlaps(events: Iterable[Event]) -> int:
    """The most bodies at once."""
    at_once = most = 0
    for event in sorted(events, key=lambda event: event.at):
        at_once += 1 if event.name == "start" else -1
        most = max(most, at_once)
    return most


def test_le_03_a_body_that_holds_the_interpreter_for_three_leases_is_started_once(
    commands: Commands, ledger: Ledger
) -> None:
    """No thread of its process can do anything meanwhile: the supervisor renews."""
    commands.dispatcher("--only", "rescue")
    commands.worker("--queues", "q")
    job = due_job("test.greedy", {"ledger": str(ledger), "seconds": 9.0}, queue="q")
    wait_until(lambda: Outcome.objects.filter(pk=job.id).exists(), what="its end")
    assert [event.name for event in ledger.events] == ["start", "end"]
    assert Outcome.objects.get(pk=job.id).attempt == 1


def test_cc_01_a_limit_holds_across_a_stop_that_outlasts_the_grace_period(
    commands: Commands, ledger: Ledger, tmp_path: Path
) -> None:
    Tenant.objects.create(slug="one", max_running=1)
    gate = tmp_path / "gate"
    payload = {"ledger": str(ledger), "until": str(gate)}
    for _ in range(3):
        due_job("test.waits", payload, queue="q", tenant="one")
    first = commands.worker("--queues", "q", threads=4)
    wait_until(lambda: ledger.count("start") == 1)
    first.send(signal.SIGTERM)
    second = commands.worker("--queues", "q", threads=4)
    assert first.wait() == 0  # killed when its grace was over: the body cannot end
    wait_until(lambda: ledger.count("start") == 2, what="the next one's start")
    gate.touch()
    wait_until(lambda: Outcome.objects.count() == 3, what="the end of all")
    assert second.process.poll() is None
    cut_off = ledger.events[0]
    assert overlaps(event for event in ledger.events if event != cut_off) == 1
    assert_sound()


def test_bl_03_no_transaction_is_open_while_a_body_runs(
    commands: Commands, ledger: Ledger, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    commands.worker("--queues", "q", threads=2)
    due_job("test.waits", {"ledger": str(ledger), "until": str(gate)}, queue="q")
    wait_until(lambda: ledger.count("start") == 1)
    with connections["default"].cursor() as cursor:
        for _ in range(50):
            cursor.execute(IN_TRANSACTION)
            assert cursor.fetchall() == []
    gate.touch()
    wait_until(lambda: ledger.count("end") == 1)
