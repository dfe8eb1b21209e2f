"""Worker processes are killed at every round trip of an atomic handler: its effect and its completion are one."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from pytest_django import Settings

from jobs.models import Job, Outcome, Queue
from tests.commands import Commands, Ledger
from tests.racing import assert_sound, due_job
from tests.waiting import wait_until

pytestmark = pytest.mark.process


class Point(NamedTuple):
    trip: str
    sent: bool
    """Killed with the statement on its way; else after its reply."""
    attempts: set[int]
    """How many the job may take in all: the first counts when it was committed."""


POINTS = [
    Point("SELECT 'before the effect'", sent=False, attempts={2}),
    Point("INSERT INTO jobs_queue", sent=True, attempts={2}),
    Point("INSERT INTO jobs_queue", sent=False, attempts={2}),
    Point("-- settle, completed", sent=True, attempts={2}),
    Point("-- settle, completed", sent=False, attempts={2}),
    Point("commit", sent=True, attempts={1, 2}),
    Point("commit", sent=False, attempts={1}),
]
TRIPS = list(dict.fromkeys(point.trip for point in POINTS))


def test_st_03_an_atomic_body_has_its_effect_once_wherever_its_process_is_killed(
    commands: Commands, ledger: Ledger, tmp_path: Path, settings: Settings
) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "external_types": ["test.mortal"]}
    epitaphs = [tmp_path / f"epitaph-{n}" for n in range(len(POINTS))]
    jobs: list[Job] = [
        due_job(
            "test.mortal",
            {
                "ledger": str(ledger),
                "number": TRIPS.index(point.trip),
                "epitaph": str(epitaph),
                "sent": point.sent,
            },
            queue="test.mortal",
        )
        for point, epitaph in zip(POINTS, epitaphs, strict=True)
    ]
    apps = "tests.handlers,tests.mortal"
    worker = commands.worker("--queues", "test.mortal", processes=2, SCHEDULER_APPS=apps)
    worker.says("worker ended", len(POINTS))
    wait_until(
        lambda: Outcome.objects.filter(state="completed").count() == len(POINTS), what="the end of all"
    )
    for point, epitaph, job in zip(POINTS, epitaphs, jobs, strict=True):
        assert epitaph.read_text().startswith(point.trip)
        outcome = Outcome.objects.get(pk=job.pk)
        assert outcome.attempt in point.attempts
        assert outcome.crashes == outcome.attempt - 1
        assert ledger.count("start", job.id) == outcome.attempt
        assert Queue.objects.get(name__startswith=str(job.id)).name == f"{job.id} {outcome.attempt}"
    assert_sound()
