"""Concurrency keys under contention: never more of a key than its type allows, and never one that waits in vain."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest
from django.db import transaction

from dispatch.admitter import Admitter
from jobs import admission, arrays, clock, notify
from jobs.leases import Claimer, Ended, admit, settle
from jobs.leases.gate import _hash
from jobs.models import Job, Outcome, QueueEntry
from jobs.newjob import NewJob
from jobs.registry import registry
from jobs.results import Claim, Completed, Key, Released, Result, Settlement, Snoozed
from jobs.sql import load
from jobs.states import JobState
from tests.factories import claim, failed, finish, own_connection, process, schedule
from tests.keyed import admitted, allow, key_of, keyed
from tests.racing import Connection, assert_sound, at_once, beside_on_own, wait_for_waiter

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]
JOBS, WORKERS, FEEDERS = 400, 20, 4
NAMES, TENANTS = 6, 2
MOST = {"test.noop": 1, "test.echo": 3}


class Ledger:
    """What runs, as the workers saw it: from the reply of a claim until its settle begins."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.most: Counter[tuple[Key, str]] = Counter()
        self._running: Counter[tuple[Key, str]] = Counter()
        self.ended: set[UUID] = set()
        self._changed = threading.Condition()

    @property
    def done(self) -> bool:
        return len(self.ended) == self.jobs

    def claimed(self, claims: list[Claim]) -> None:
        with self._changed:
            for name in map(_name, claims):
                self._running[name] += 1
                self.most[name] = max(self.most[name], self._running[name])

    def settling(self, results: list[tuple[Claim, Result]]) -> None:
        with self._changed:
            for each, _ in results:
                self._running[_name(each)] -= 1
            self._changed.notify_all()

    def has_ended(self, job_id: UUID) -> None:
        with self._changed:
            self.ended.add(job_id)
            self._changed.notify_all()

    def wait(self) -> None:
        with self._changed:
            if not self.done:
                self._changed.wait(0.01)


def _name(each: Claim) -> tuple[Key, str]:
    assert each.held.key
    return each.held.key, each.held.job_type


def work(own: Connection, ledger: Ledger, chance: random.Random, types: list[str]) -> None:
    claimers = [Claimer(queue, process(own), registry.names()) for queue in types]
    while not ledger.done:
        held: list[Claim] = []
        for claimer in chance.sample(claimers, len(claimers)):
            claims = claimer.claim(own, 4, 4)
            ledger.claimed(claims)
            held += claims
        ledger.wait()  # others claim meanwhile
        results = [(each, outcome(chance)) for each in held]
        ledger.settling(results)
        settled = settle(own, [Settlement(each.held, result, None) for each, result in results])
        for job_id, fate in settled.fates.items():
            if isinstance(fate, Ended):
                ledger.has_ended(job_id)
        admit(own, settled.keys)


def outcome(chance: random.Random) -> Result:
    """One in five comes again, at once."""
    again: list[Result] = [Released(), Snoozed(timedelta()), failed(after=timedelta())]
    return chance.choice(again) if chance.random() < 0.2 else Completed()


def feed(own: Connection, part: int, chance: random.Random) -> None:
    """A quarter of the jobs: some one by one, some many in one transaction."""
    numbers = range(part, JOBS, FEEDERS)
    for start in range(0, len(numbers), 10):
        some = [new(n) for n in numbers[start : start + 10]]
        if chance.random() < 0.5:
            with transaction.atomic():
                Job.objects.schedule_many(some)
        else:
            for each in some:
                schedule(each.job_type, tenant=each.tenant, concurrency_key=each.concurrency_key)


def new(n: int) -> NewJob:
    return NewJob(
        job_type=("test.noop", "test.echo")[n % 2],
        tenant=f"t{n // 2 % TENANTS}",
        concurrency_key=f"{n % NAMES}",
        priority=n % 3,
    )


def meddle(own: Connection, ledger: Ledger, chance: random.Random) -> None:
    """Cancel, retry and reschedule what waits; everything comes again but some that stay cancelled."""
    while not ledger.done:
        waiting = list(QueueEntry.objects.filter(lease_token=None).values_list("job_id", flat=True)[:20])
        for job_id in chance.sample(waiting, min(3, len(waiting))):
            job = Job.objects.get(pk=job_id)
            match chance.randrange(3):
                case 0:
                    job.reschedule(clock.now())
                case 1 if job.cancel().changed:
                    job.retry()
                case _ if job.cancel().changed:
                    ledger.has_ended(job_id)
        ledger.wait()


@pytest.mark.parametrize("seed", range(2))
def test_twenty_workers_never_run_more_of_a_key_and_need_no_dispatcher_to_run_all(
    seed: int, connection: Connection
) -> None:
    allow(connection, 3, "test.echo")
    ledger = Ledger(JOBS)
    acts: list[Callable[[Connection], None]] = [
        partial(feed, part=part, chance=random.Random(seed + part)) for part in range(FEEDERS)
    ]
    acts += [
        partial(work, ledger=ledger, chance=random.Random(seed + n), types=["test.noop", "test.echo"])
        for n in range(WORKERS)
    ]
    acts.append(partial(meddle, ledger=ledger, chance=random.Random(seed)))
    at_once(acts, timeout=100.0)
    assert {name: most for name, most in ledger.most.items() if most > MOST[name[1]]} == {}
    assert max(ledger.most.values()) == 3, "it was never put to the test"
    assert not QueueEntry.objects.exists()
    assert Outcome.objects.count() == JOBS
    assert_sound()


def test_twenty_admissions_at_once_give_one_place(connection: Connection) -> None:
    with transaction.atomic():  # nobody admits before the commit
        jobs = [keyed() for _ in range(20)]
        transaction.get_connection().run_on_commit.clear()
    assert admitted(*jobs) == [False] * 20
    assert sum(at_once([lambda own: admit(own, [key_of(jobs[0])])] * 20)) == 1
    assert admitted(*jobs).count(True) == 1
    assert_sound()


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_who_waits_for_another_admission_counts_what_it_gave(connection: Connection, level: str) -> None:
    with transaction.atomic():
        jobs = [keyed() for _ in range(2)]
        transaction.get_connection().run_on_commit.clear()
    key = key_of(jobs[0])

    def second(own: Connection) -> int:
        own.isolation_level = None  # as of Django's connections, on which callers admit
        own.execute(f"SET default_transaction_isolation TO '{level}'")
        return admit(own, [key])

    with connection.transaction():
        connection.execute(load("lock_keys"), {"hashes": arrays.int8s([_hash(key)])})
        values = {"tenants": arrays.int8s([key[0]]), "names": [key[1]]}
        assert connection.execute(load("admit"), values).rowcount == 1
        future = beside_on_own(second)
        wait_for_waiter(connection, who=future)
    assert future.result(30) == 0
    assert admitted(*jobs) == [True, False]


def test_admissions_of_two_keys_in_opposite_order_do_not_deadlock(connection: Connection) -> None:
    """Both stop at the lock in the middle; had they taken them as given, each would now have what the other needs."""
    keys = sorted(key_of(keyed(name)) for name in "abc")
    with connection.transaction():
        connection.execute(load("lock_keys"), {"hashes": arrays.int8s([_hash(keys[1])])})
        forth = beside_on_own(lambda own: admit(own, keys))
        wait_for_waiter(connection)
        back = beside_on_own(lambda own: admit(own, keys[::-1]))
        wait_for_waiter(connection, 2)
    assert (forth.result(30), back.result(30)) == (0, 0)


def test_a_callers_open_transaction_holds_up_nobody_of_its_key(connection: Connection) -> None:
    first, second = keyed(), keyed()
    with transaction.atomic():
        keyed()
        own = process(connection)
        connection.execute("SET lock_timeout = '5s'")
        held = claim(connection, first, own)
        finish(connection, held, Completed())
        assert admit(connection, [key_of(first)]) == 1
    assert admitted(second) == [True]
    assert_sound()


def test_an_entry_that_a_cancel_has_locked_is_passed_over_and_admitted_when_it_lets_go(
    connection: Connection,
) -> None:
    first, second, third = keyed(), keyed(), keyed()
    finish(connection, claim(connection, first, process(connection)), Completed())
    with transaction.atomic():
        second.cancel()
        assert beside_on_own(lambda own: admit(own, [key_of(first)])).result(30) == 1
        assert admitted(third) == [True]
        transaction.set_rollback(True)
    third.cancel()
    assert admitted(second) == [True]
    assert_sound()


def test_a_cancel_that_was_rolled_back_leaves_the_place_taken(connection: Connection) -> None:
    first, second = keyed(), keyed()
    with transaction.atomic():
        first.cancel()
        transaction.set_rollback(True)
    assert admitted(first, second) == [True, False]
    first.cancel()
    assert admitted(second) == [True]


def test_one_admission_is_made_for_all_that_a_transaction_scheduled(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    admission._asked.clear()
    monkeypatch.setattr("jobs.admission.admit", lambda raw, keys, using: asked.append(len(keys)))
    with transaction.atomic():
        for n in range(10):
            keyed(f"k{n % 3}")
        with transaction.atomic():
            keyed("gone")
            transaction.set_rollback(True)
    assert asked == [4]
    keyed()
    assert asked == [4, 1]


def test_an_admission_that_fails_is_no_error_of_the_caller_and_is_made_up_for(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*args: object) -> None:
        raise OSError("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr("jobs.admission.admit", lost)
        job = keyed()
    assert (job.state, admitted(job)) == (JobState.QUEUED, [False])
    Admitter().run_once(
        connection, clock.asked()
    )  # what is remembered may lag behind what has just been written
    assert admitted(job) == [True]


def test_an_idle_worker_is_told_of_what_was_admitted(connection: Connection) -> None:
    first, second = keyed(), keyed()
    with own_connection() as listener:
        listener.execute("LISTEN jobs_queued")
        finish(connection, claim(connection, first, process(connection)), Completed())
        notify._hints._sent.clear()
        assert admit(connection, [key_of(first)]) == 1
        assert next(listener.notifies(timeout=30.0, stop_after=1)).channel == "jobs_queued"
    assert admitted(second) == [True]
