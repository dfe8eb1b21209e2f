"""Concurrency keys and holds with real workers and dispatchers, judged by what the bodies wrote."""

from __future__ import annotations

import signal
import time
from collections import defaultdict
from datetime import timedelta
from uuid import UUID

import pytest

from jobs import clock
from jobs.holds import hold, lift
from jobs.models import Hold, Job, KeyLimit, QueueEntry
from jobs.newjob import NewJob
from tests.commands import Commands, Event, Ledger
from tests.factories import schedule
from tests.racing import assert_sound
from tests.waiting import wait_until

pytestmark = pytest.mark.process


def most_at_once(events: list[Event], key_of: dict[UUID, str]) -> dict[str, int]:
    """Of each key how many bodies ran at once at most. A body whose process was killed ran until its next start."""
    running: dict[str, set[UUID]] = defaultdict(set)
    most: dict[str, int] = defaultdict(int)
    for event in sorted(events, key=lambda event: event.at):
        mine = running[key_of[event.job_id]]
        if event.name == "start":
            mine.add(event.job_id)
        else:
            mine.discard(event.job_id)
        most[key_of[event.job_id]] = max(most[key_of[event.job_id]], len(mine))
    return dict(most)


def jobs_of(keys: str, each: int, ledger: Ledger, job_type: str = "test.ledger") -> dict[UUID, str]:
    payload = {"ledger": str(ledger), "seconds": 0.02}
    new = [
        NewJob(job_type=job_type, payload=payload, concurrency_key=key) for key in keys for _ in range(each)
    ]
    return {
        job_id: job.concurrency_key or ""
        for (job_id, _), job in zip(Job.objects.schedule_many(new), new, strict=True)
    }


def test_jobs_of_one_key_run_one_after_another_and_all_run_though_a_worker_is_killed(
    commands: Commands, ledger: Ledger
) -> None:
    commands.dispatcher()
    first = commands.worker(processes=2, threads=4)
    commands.worker(processes=2, threads=4)
    key_of = jobs_of("abc", 15, ledger)
    wait_until(lambda: ledger.count("end") >= 5)
    first.send(signal.SIGKILL)
    wait_until(lambda: len(ledger.ids("end")) == len(key_of), timeout=120.0)
    events = ledger.events
    begun = {event.job_id for event in events if event.name == "start"}
    assert begun == set(key_of)
    assert most_at_once(events, key_of) == dict.fromkeys("abc", 1)
    wait_until(lambda: not QueueEntry.objects.exists())
    assert_sound()


def test_workers_tell_how_many_their_types_allow(commands: Commands, ledger: Ledger) -> None:
    commands.worker(processes=1, threads=8)
    assert dict(KeyLimit.objects.values_list("job_type", "most")) == {"test.three": 3}
    key_of = jobs_of("a", 12, ledger, "test.three")
    wait_until(lambda: len(ledger.ids("end")) == 12)
    assert most_at_once(ledger.events, key_of) == {"a": 3}
    assert_sound()


def test_an_atomic_body_and_one_that_took_its_process_along_let_the_next_of_their_key_in(
    commands: Commands, ledger: Ledger
) -> None:
    """Without a dispatcher: whoever ends a job sees to it."""
    commands.worker(threads=2)
    payload = {"ledger": str(ledger)}
    jobs = [schedule("test.atomic", {"slug": str(n)}, concurrency_key="a") for n in range(3)]
    jobs += [schedule("test.exit", payload, concurrency_key="b", max_attempts=1)]
    jobs += [schedule("test.ledger", payload, concurrency_key="b")]
    wait_until(lambda: not QueueEntry.objects.exists())
    assert [str(job.state) for job in jobs] == ["completed"] * 3 + ["failed", "completed"]
    assert_sound()


def test_a_job_with_a_key_starts_at_its_time(commands: Commands, ledger: Ledger) -> None:
    commands.dispatcher()
    commands.worker(threads=4)
    due_at = clock.now() + timedelta(seconds=7)
    jobs = [
        schedule("test.ledger", {"ledger": str(ledger)}, due_at=due_at, concurrency_key=key) for key in "ab"
    ]
    wait_until(lambda: ledger.count("end") == 2)
    late = max(event.at for event in ledger.events if event.name == "start") - jobs[0].due_at.timestamp()
    assert 0 <= late < 5, "long before the next sweep"
    assert_sound()


def test_a_held_type_starts_nothing_and_its_backlog_comes_back_at_the_rate(
    commands: Commands, ledger: Ledger
) -> None:
    payload = {"ledger": str(ledger)}
    commands.dispatcher()
    commands.dispatcher("--only", "hold")
    commands.worker(threads=4)
    schedule("test.ledger", payload)
    wait_until(lambda: ledger.count("end") == 1)
    made = hold("type", "test.ledger", reason="test")
    Job.objects.schedule_many(NewJob(job_type="test.ledger", payload=payload) for _ in range(40))
    wait_until(lambda: QueueEntry.objects.filter(parked="hold").count() == 40)
    free = schedule("test.noop")
    wait_until(lambda: str(free.state) == "completed")
    assert ledger.count("start") == 1
    begun = time.monotonic()
    lift(made, rate=10)
    wait_until(lambda: ledger.count("end") == 41)
    assert time.monotonic() - begun > 2.9, "40 jobs, at 10 a second, of which one second's may be saved up"
    wait_until(lambda: Hold.objects.get().drained_at is not None)
    assert_sound()
