"""The benchmark's judgement: what the client was promised against what the ledger says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connections

from jobs.leases import Claimer
from jobs.registry import registry
from scheduler_project.benchmark.claims import note_claims, read_claims
from scheduler_project.benchmark.ledger import Ledger
from tests.factories import come_due, process, schedule, take

Connection = psycopg.Connection[Any]


@pytest.fixture
def client(here: Connection, tmp_path: Path) -> Iterator[Any]:
    from scheduler_project.benchmark.client import Client
    from scheduler_project.benchmark.work import tasks  # registers its handlers in this process

    registry.add(tasks.noop)
    yield Client(here, Ledger.create(tmp_path / "ledger", 100), lambda message: None)
    registry.remove(tasks.NOOP)


def now() -> datetime:
    """A moment that has passed, whatever is rounded up."""
    return datetime.now(UTC) - timedelta(seconds=1)


def test_a_job_that_never_ran_is_lost(client: Any) -> None:
    numbers = client.schedule([now()] * 3)
    client.ledger.note(numbers[0])
    client.ledger.note(numbers[2])
    assert client.judge() == {"early": 0, "lost": 1, "twice": 0}


def test_a_start_before_the_due_time_is_early(client: Any) -> None:
    numbers = client.schedule([now(), now() + timedelta(seconds=9)])
    for number in numbers:
        client.ledger.note(number)
    assert client.judge() == {"early": 1, "lost": 0, "twice": 0}
    assert client.lateness(numbers)[0] == pytest.approx(-8, abs=1)


def test_a_second_run_is_seen(client: Any) -> None:
    (number,) = client.schedule([now()])
    client.ledger.note(number)
    client.ledger.note(number)
    assert client.judge() == {"early": 0, "lost": 0, "twice": 1}


def test_a_breach_of_the_invariant_counts_as_lost_whatever_the_ledger_says(client: Any) -> None:
    (number,) = client.schedule([now()])
    client.ledger.note(number)
    with connections["default"].cursor() as cursor:
        cursor.execute("DELETE FROM jobs_queueentry")
    assert client.judge() == {"early": 0, "lost": 1, "twice": 0}


def test_claims_that_take_something_are_noted(
    here: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Claimer, "claim", Claimer.claim)  # put back afterwards
    note_claims(tmp_path / "claims")
    worker = process(here)
    assert take(here, "test.noop", worker) == []
    assert read_claims(tmp_path / "claims") == []
    schedule()
    come_due(here)
    assert len(take(here, "test.noop", worker)) == 1
    ((at, seconds),) = read_claims(tmp_path / "claims")
    assert 0 < seconds < 60
    assert at == pytest.approx(datetime.now(UTC).timestamp(), abs=60)
