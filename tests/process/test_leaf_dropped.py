"""Somebody drops a leaf of today by hand: it is named, nobody's loop ends, and what had to wait for it is written when it
is there again."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from jobs import clock
from jobs.models import Outcome, QueueEntry
from jobs.partitions import day_of
from jobs.sql import leaf
from tests.commands import Commands, Ledger
from tests.factories import own_connection
from tests.racing import assert_sound, due_job
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


@pytest.mark.parametrize("parent", ["jobs_outcome", "jobs_attempt"])
def test_results_wait_for_their_leaf_and_are_written_once(
    commands: Commands, ledger: Ledger, parent: str
) -> None:
    due_job("test.flaky", {"ledger": str(ledger), "failures": 1}, queue="q")
    due_job("test.ledger", {"ledger": str(ledger)}, queue="q")  # each makes what is missing, so first
    today = day_of(clock.now())
    with own_connection() as connection:
        connection.execute(f'DROP TABLE "{leaf(parent, today)}"')
    worker = commands.worker("--queues", "q", threads=4)
    worker.says("a result cannot be written")
    with pytest.raises(CommandError):
        call_command("checkjobs", stderr=(told := io.StringIO()), stdout=io.StringIO())
    assert f"day {today} lacks its leaves of {parent}" in told.getvalue()
    assert worker.process.poll() is None
    dispatcher = commands.dispatcher()  # its upkeep makes what is missing
    wait_until(lambda: Outcome.objects.count() == 2, what="both outcomes")
    wait_until(lambda: not QueueEntry.objects.exists())
    assert worker.process.poll() is None
    assert dispatcher.process.poll() is None
    assert ledger.count("end") == 1
    assert_sound()


def test_a_whole_day_dropped_by_hand_is_named_and_the_loops_go_on(commands: Commands, ledger: Ledger) -> None:
    """Of what was due on it nothing is left but the queue's own rows: their jobs are told, never run blindly."""
    lost = due_job("test.ledger", {"ledger": str(ledger)}, queue="q")
    today = day_of(lost.due_at)
    with own_connection() as connection:
        for parent in ("jobs_job", "jobs_timer", "jobs_outcome", "jobs_attempt", "jobs_crontick"):
            connection.execute(f'DROP TABLE IF EXISTS "{leaf(parent, today)}"')
    worker = commands.worker("--queues", "q")
    worker.says("a claimed job has no row")
    commands.dispatcher().says("made days")
    other = due_job("test.ledger", {"ledger": str(ledger)}, queue="q")
    wait_until(lambda: ledger.count("end", other.pk), what="a job of the day that was made again")
    with pytest.raises(CommandError):
        call_command("checkjobs", stderr=(told := io.StringIO()), stdout=io.StringIO())
    assert f"job {lost.pk} has entry but no job row" in told.getvalue()
    assert ledger.count("start", lost.pk) == 0
    QueueEntry.objects.filter(pk=lost.pk).delete()
