"""Overlap policies: judged when the slot has come, against what really runs; each skipped slot says which job was in
the way."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from jobs import clock, verbs
from jobs.models import CronDefinition, CronRun, CronTick, Job, QueueEntry
from jobs.reconcile import reconcile
from jobs.results import Cancelled, Completed, Result
from jobs.states import JobState
from tests.db.test_ticker import MINUTE, by_sql, define, soon, tick
from tests.factories import claim, failed, finish, process

Connection = psycopg.Connection[Any]


class Scene:
    """A definition with a slot each minute, seen minute by minute, in the past so that its jobs can be claimed."""

    def __init__(self, here: Connection, overlap: str, **options: Any) -> None:
        self.here, self.base = here, clock.now() - 30 * MINUTE
        every: dict[str, Any] = {"expression": "", "every": MINUTE, "anchor_at": self.base}
        self.definition = define(last_slot=self.base, overlap=overlap, **every | options)
        by_sql(self.definition, revised_at=self.base)

    def tick(self, minute: float) -> None:
        tick(self.here, self.base + minute * MINUTE)

    def outcomes(self) -> list[str]:
        return list(CronTick.objects.order_by("slot").values_list("outcome", flat=True))

    def row(self, minute: int) -> CronTick:
        return CronTick.objects.get(slot=self.base + minute * MINUTE)

    def job(self, minute: int) -> Job:
        job: Job = Job.objects.get(pk=self.row(minute).job_id)
        return job

    def run(self, minute: int) -> Any:
        """Claim the job of this minute; returns the claim."""
        return claim(self.here, self.job(minute), process(self.here))

    def end(self, held: Any, result: Result | None = None) -> None:
        finish(self.here, held, result or Completed())

    def is_clean(self) -> bool:
        found = reconcile(self.base - MINUTE, now=self.base + 20 * MINUTE)
        return [each for each in found.breaches if not each.startswith("missing")] == []


def test_mi_09_allow_starts_each_at_its_slot(here: Connection) -> None:
    scene = Scene(here, "allow_all")
    for minute in range(4):
        scene.tick(minute)
    assert set(scene.outcomes()) == {"fired"}
    assert not CronRun.objects.exists()


def test_mi_09_skip_records_what_it_skips_and_by_which_job(here: Connection) -> None:
    scene = Scene(here, "skip")
    scene.tick(1)
    held = scene.run(1)
    scene.tick(2)
    scene.tick(3)
    scene.end(held)
    scene.tick(4)
    assert scene.outcomes() == ["fired", "skipped", "skipped", "fired"]
    assert {scene.row(2).job_id, scene.row(3).job_id} == {scene.job(1).id}
    assert scene.row(2).reason == "overlap: an earlier run has not ended"
    assert Job.objects.count() == 2
    assert scene.is_clean()


def test_nothing_is_written_ahead_of_a_slot_that_will_be_judged(here: Connection) -> None:
    scene = Scene(here, "skip")
    scene.tick(0.9)
    assert scene.outcomes() == []
    scene.tick(1)
    assert scene.outcomes() == ["fired"]


def test_mi_09_queue_one_has_one_active_and_one_waiting(here: Connection) -> None:
    scene = Scene(here, "buffer_one")
    scene.tick(1)
    held = scene.run(1)
    for minute in (2, 3, 4):
        scene.tick(minute)
    assert scene.outcomes() == ["fired", "waiting", "skipped", "skipped"]
    assert Job.objects.count() == 1
    scene.end(held)
    scene.tick(4.5)
    assert scene.outcomes() == ["fired", "late", "skipped", "skipped"]
    assert scene.row(2).reason == "late by 150.0 s: waited for an earlier run"
    assert scene.job(2).slot == scene.row(2).slot
    assert scene.is_clean()


def test_a_start_that_waits_is_looked_for_once_a_second(here: Connection) -> None:
    scene = Scene(here, "buffer_all")
    scene.tick(1)
    scene.run(1)
    scene.tick(2)
    scene.definition.refresh_from_db()
    assert scene.definition.look_at == scene.base + 2 * MINUTE + timedelta(seconds=1)


def test_buffer_all_starts_all_in_order_one_after_another(here: Connection) -> None:
    scene = Scene(here, "buffer_all")
    for minute in (1, 2, 3):
        scene.tick(minute)
    assert scene.outcomes() == ["fired", "waiting", "waiting"]
    for number, minute in enumerate((1, 2, 3)):
        scene.end(scene.run(minute))
        scene.tick(3.2 + number / 10)
    assert scene.outcomes() == ["fired", "late", "late"]
    assert not CronRun.objects.filter(job_id__isnull=True).exists()
    assert scene.is_clean()


def test_cancel_other_asks_the_running_one_to_stop_and_starts_when_it_has(here: Connection) -> None:
    scene = Scene(here, "cancel_other")
    scene.tick(1)
    held = scene.run(1)
    scene.tick(2)
    assert scene.outcomes() == ["fired", "waiting"]
    assert QueueEntry.objects.get(pk=held.held.job_id).cancel_requested
    assert scene.job(1).state is JobState.RUNNING
    scene.tick(3)
    assert scene.outcomes() == ["fired", "skipped", "waiting"]
    assert scene.row(2).reason == "overlap: a later slot came as well"
    scene.end(held, Cancelled())
    scene.tick(3.1)
    assert scene.outcomes() == ["fired", "skipped", "late"]
    assert scene.job(1).state is JobState.CANCELLED
    assert scene.is_clean()


def test_a_start_that_was_overtaken_is_no_run_and_the_last_of_all_runs_is_not_overtaken(
    here: Connection,
) -> None:
    scene = Scene(here, "cancel_other", max_runs=3)
    scene.tick(1)
    held = scene.run(1)
    scene.tick(2)
    scene.tick(3)
    scene.end(held, Cancelled())
    scene.tick(3.1)
    assert scene.outcomes() == ["fired", "skipped", "late"]
    held = scene.run(3)
    for minute in (4, 5, 6):
        scene.tick(minute)
    assert scene.outcomes() == ["fired", "skipped", "late", "waiting"]
    scene.end(held, Cancelled())
    scene.tick(7)
    assert scene.outcomes() == ["fired", "skipped", "late", "late"]
    assert scene.is_clean()


def test_cancel_other_ends_at_once_what_has_not_begun(here: Connection) -> None:
    scene = Scene(here, "cancel_other")
    scene.tick(1)
    scene.tick(2)
    assert scene.job(1).state is JobState.CANCELLED
    scene.tick(2.1)
    assert scene.outcomes() == ["fired", "late"]


@pytest.mark.parametrize("overlap", ["skip", "buffer_one", "buffer_all", "cancel_other"])
def test_a_run_that_waits_for_another_attempt_is_unfinished(here: Connection, overlap: str) -> None:
    scene = Scene(here, overlap)
    scene.tick(1)
    scene.end(scene.run(1), failed())
    scene.tick(2)
    assert scene.outcomes()[1] == ("skipped" if overlap == "skip" else "waiting")


def test_missed_slots_that_all_shall_run_are_run_one_after_another_under_skip(here: Connection) -> None:
    scene = Scene(here, "skip", misfire="run_all", misfire_grace=timedelta())
    scene.tick(3.5)
    assert scene.outcomes() == ["late", "waiting", "waiting"]
    for number, minute in enumerate((1, 2)):
        scene.end(scene.run(minute))
        scene.tick(3.6 + number / 10)
    assert scene.outcomes() == ["late", "late", "late"]


def test_an_edit_drops_the_starts_that_wait(here: Connection) -> None:
    scene = Scene(here, "buffer_all")
    for minute in (1, 2):
        scene.tick(minute)
    by_sql(scene.definition, priority=3)
    assert scene.row(2).reason == "the definition was changed while it waited"
    assert scene.outcomes() == ["fired", "skipped"]
    assert list(CronRun.objects.values_list("job_id", flat=True)) == [scene.job(1).id]


def test_the_run_before_an_edit_still_stands_in_the_way(here: Connection) -> None:
    scene = Scene(here, "skip")
    scene.tick(1)
    by_sql(scene.definition, priority=3)
    now = clock.now()
    tick(here, now + 2 * MINUTE)
    assert Counter(CronTick.objects.filter(revision=2).values_list("outcome", flat=True))["fired"] == 0
    assert CronTick.objects.filter(revision=2, job_id=scene.job(1).id).exists()


def test_what_was_written_ahead_is_withdrawn_when_runs_must_not_overlap_any_more(here: Connection) -> None:
    definition = define(expression=soon())
    tick(here)
    ahead = list(Job.objects.all())
    by_sql(definition, overlap="skip")
    assert ahead
    assert {job.state for job in ahead} == {JobState.CANCELLED}


def test_a_run_by_hand_counts_as_a_run(here: Connection) -> None:
    scene = Scene(here, "skip")
    scene.tick(0.5)
    by_hand = scene.definition.run_now()
    scene.tick(1)
    assert scene.row(1).outcome == "skipped"
    assert scene.row(1).job_id == by_hand


def test_a_deleted_definition_leaves_no_runs_behind(here: Connection) -> None:
    scene = Scene(here, "buffer_all")
    for minute in (1, 2):
        scene.tick(minute)
    scene.definition.delete()
    assert not CronRun.objects.exists()


def test_runs_that_have_ended_are_forgotten(here: Connection) -> None:
    scene = Scene(here, "skip")
    for minute in (1, 2, 3):
        scene.tick(minute)
        if scene.row(minute).outcome == "fired":
            verbs.cancel([scene.job(minute).id])
    assert CronRun.objects.count() == 1
    assert CronDefinition.objects.get().runs == 3
