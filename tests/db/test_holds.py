"""Holds: made, lifted, ended by time; what waits of held types and groups is parked and comes back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from dispatch import holder
from dispatch.holder import BACK, DRAINING, PERIOD, SWEEP, Holder
from jobs import clock, holds
from jobs.clock import DatabaseClock
from jobs.errors import InvalidValue, UnknownTenant
from jobs.models import Hold, Job, QueueEntry, RateBucket
from tests.factories import come_due, process, schedule, take
from tests.keyed import admitted, keyed, let_in

Connection = psycopg.Connection[Any]
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


class Boot:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def boot(monkeypatch: pytest.MonkeyPatch) -> Boot:
    made = Boot()
    monkeypatch.setattr(holder, "boottime", made)
    return made


@pytest.fixture
def work(here: Connection, boot: Boot) -> Holder:
    return Holder()


def run(work: Holder, here: Connection) -> int:
    return work.run_once(here, DatabaseClock().read(here))


def due(job_type: str = "test.noop", **options: Any) -> Job:
    return schedule(job_type, delay=-SECOND, **options)


def parked(*jobs: Job) -> list[str | None]:
    found = dict(QueueEntry.objects.values_list("job_id", "parked"))
    return [found[job.id] for job in jobs]


# the verbs


def test_a_hold_says_who_and_why_and_stands_until_it_is_lifted(here: Connection) -> None:
    made = holds.hold("queue", "q", reason=" broken ", by="ada")
    assert (made.scope, made.key, made.reason, made.by, made.until) == ("queue", "q", "broken", "ada", None)
    assert list(holds.standing()) == [made]
    lifted = holds.lift(made)
    assert lifted.until is not None
    assert not holds.standing().exists()
    with pytest.raises(InvalidValue, match="hold: a queue q was resumed at"):
        holds.lift(made)


def test_a_hold_ends_by_itself(here: Connection) -> None:
    made = holds.hold("all", until=clock.now() + HOUR)
    assert holds.standing().exists()
    Hold.objects.filter(pk=made.pk).update(since=made.since - HOUR, until=clock.now() - SECOND)
    assert not holds.standing().exists()


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("scope", {"scope": "job"}),
    ("scope", {"scope": None}),
    ("key", {"scope": "all", "key": "q"}),
    ("key", {"key": ""}),
    ("key", {"key": " q"}),
    ("key", {"key": "a\nb"}),
    ("key", {"key": "x" * 101}),
    ("key", {"key": None}),
    ("key", {"key": 5}),
    ("reason", {"reason": None}),
    ("reason", {"reason": "a\0b"}),
    ("reason", {"reason": "x" * 501}),
    ("by", {"by": "x" * 151}),
    ("until", {"until": datetime(2099, 1, 1)}),  # noqa: DTZ001
    ("until", {"until": datetime(2020, 1, 1, tzinfo=UTC)}),
    ("until", {"until": HOUR}),
]


@pytest.mark.parametrize(("field", "options"), WRONG, ids=lambda value: str(value)[:50])
def test_what_cannot_be_held_is_refused_by_name(
    here: Connection, field: str, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidValue, match=f"^{field}: ") as caught:
        holds.hold(**{"scope": "queue", "key": "q", **options})
    assert caught.value.field == field
    assert not Hold.objects.exists()


def test_a_tenant_that_is_none_cannot_be_held(here: Connection) -> None:
    with pytest.raises(UnknownTenant, match="there is no tenant 'nobody'"):
        holds.hold("tenant", "nobody")


@pytest.mark.parametrize("rate", [0, -1, 1.5, True, "3", 1_000_001])
def test_a_rate_that_is_none_is_refused(here: Connection, rate: Any) -> None:
    made = holds.hold("queue", "q")
    with pytest.raises(InvalidValue, match=r"^rate: .* is no whole number from 1 to 1,000,000"):
        holds.lift(made, rate=rate)
    assert holds.standing().exists()


def test_a_hold_that_is_none_cannot_be_lifted(here: Connection) -> None:
    with pytest.raises(InvalidValue, match="hold: there is no hold 5"):
        holds.lift(5)


@pytest.mark.parametrize("hold", ["x", None, True, 2**63])
def test_what_is_no_hold_cannot_be_lifted(here: Connection, hold: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^hold: .* is no hold, nor the number of one"):
        holds.lift(hold)


# what it does to what waits


@pytest.mark.parametrize(("scope", "key"), [("type", "test.echo"), ("group", "g")])
def test_what_waits_is_parked_and_what_comes_as_well_and_nothing_else(
    here: Connection, work: Holder, scope: str, key: str
) -> None:
    mine = {"type": {"job_type": "test.echo"}, "group": {"group": "g"}}[scope]
    held, other = due(**mine, queue="a"), due(queue="b", group="other")
    holds.hold(scope, key)
    run(work, here)
    assert parked(held, other) == ["hold", None]
    came, later = due(**mine, queue="c"), schedule(**mine, delay=4 * SECOND)
    run(work, here)
    assert parked(came, later, other) == ["hold", None, None]
    QueueEntry.objects.filter(job_id=later.id).update(run_at=clock.now())
    run(work, here)
    assert parked(later) == ["hold"]


def test_what_runs_goes_on(here: Connection, work: Holder) -> None:
    job = due()
    come_due(here)
    assert take(here, "test.noop", process(here))
    holds.hold("type", "test.noop")
    run(work, here)
    assert parked(job) == [None]


def test_what_was_held_comes_back_when_the_hold_is_lifted_and_the_hold_is_over(
    here: Connection, work: Holder
) -> None:
    made, jobs = holds.hold("type", "test.noop"), [due() for _ in range(3)]
    run(work, here)
    assert parked(*jobs) == ["hold"] * 3
    holds.lift(made)
    assert run(work, here) == 3
    assert parked(*jobs) == [None] * 3
    assert min(QueueEntry.objects.values_list("run_at", flat=True)) > jobs[-1].created_at
    run(work, here)
    assert Hold.objects.get().drained_at is not None


def test_a_hold_whose_time_is_over_lets_go(here: Connection, work: Holder) -> None:
    made, job = holds.hold("type", "test.noop", until=clock.now() + HOUR), due()
    run(work, here)
    Hold.objects.filter(pk=made.pk).update(since=made.since - HOUR, until=clock.now() - SECOND)
    run(work, here)
    assert parked(job) == [None]


def test_what_another_hold_holds_too_stays(here: Connection, work: Holder) -> None:
    first, second = holds.hold("type", "test.noop"), holds.hold("group", "g")
    both, one = due(group="g"), due()
    run(work, here)
    holds.lift(first)
    run(work, here)
    run(work, here)
    assert parked(both, one) == ["hold", None]
    assert Hold.objects.get(pk=first.pk).drained_at is not None
    holds.lift(second)
    run(work, here)
    assert parked(both) == [None]


def test_two_holds_of_one_target_end_when_both_are_lifted(here: Connection, work: Holder) -> None:
    first, second, job = holds.hold("group", "g"), holds.hold("group", "g"), due(group="g")
    run(work, here)
    holds.lift(first)
    run(work, here)
    assert parked(job) == ["hold"]
    holds.lift(second)
    run(work, here)
    assert parked(job) == [None]


def test_a_backlog_comes_back_at_the_given_rate(here: Connection, work: Holder) -> None:
    made, jobs = holds.hold("type", "test.noop"), [due() for _ in range(30)]
    urgent = due(priority=9)
    run(work, here)
    holds.lift(made, rate=10)
    assert run(work, here) == 0
    assert work.period == DRAINING
    RateBucket.objects.update(refilled_at=clock.asked() - SECOND / 2)
    assert run(work, here) == 5
    assert parked(urgent) == [None]
    RateBucket.objects.update(refilled_at=clock.now() - HOUR)
    assert run(work, here) == 10, "what was saved up is a second's worth"
    for _ in range(2):
        RateBucket.objects.update(refilled_at=clock.now() - SECOND)
        run(work, here)
    assert parked(*jobs).count("hold") < 10
    for _ in range(2):
        RateBucket.objects.update(refilled_at=clock.now() - SECOND)
        run(work, here)
    assert Hold.objects.get().drained_at is not None
    assert not RateBucket.objects.exists()
    run(work, here)
    assert work.period == PERIOD


def test_jobs_with_a_key_give_up_their_place_to_others_and_wait_for_one_again(
    here: Connection, work: Holder
) -> None:
    first, second = keyed(group="g"), keyed()
    let_in(here, first)
    made = holds.hold("group", "g")
    run(work, here)
    assert parked(first, second) == ["hold", None]
    holds.lift(made)
    run(work, here)
    assert parked(first) == ["key"]
    second.cancel()
    let_in(here, first)
    assert admitted(first) == [True]


def test_who_waits_for_a_key_is_held_too_and_others_of_the_key_pass(here: Connection, work: Holder) -> None:
    holder_of_place, held, free = keyed(), keyed(group="g"), keyed()
    let_in(here, holder_of_place)
    holds.hold("group", "g")
    run(work, here)
    assert parked(held, free) == ["hold", "key"]
    holder_of_place.cancel()
    let_in(here, free)
    assert admitted(free) == [True]


def test_a_held_job_can_be_cancelled_and_rescheduled(here: Connection, work: Holder) -> None:
    first, second = due(), due()
    holds.hold("type", "test.noop")
    run(work, here)
    assert first.cancel().changed == 1
    second.reschedule(clock.now() + HOUR)
    assert parked(second) == ["hold"]


def test_what_was_committed_late_is_found_by_the_sweep(here: Connection, work: Holder, boot: Boot) -> None:
    holds.hold("type", "test.noop")
    run(work, here)
    job = due()
    QueueEntry.objects.update(run_at=clock.now() - BACK - SECOND)
    run(work, here)
    assert parked(job) == [None]
    boot.time += SWEEP
    run(work, here)
    assert parked(job) == ["hold"]


def test_what_was_parked_by_one_who_had_not_heard_of_the_end_comes_back(
    here: Connection, work: Holder, boot: Boot
) -> None:
    run(work, here)
    job = due()
    QueueEntry.objects.update(parked="hold")
    run(work, here)
    assert parked(job) == ["hold"]
    boot.time += SWEEP
    run(work, here)
    assert parked(job) == [None]


def test_after_an_interruption_it_looks_at_all(here: Connection, work: Holder) -> None:
    run(work, here)
    job = due()
    QueueEntry.objects.update(parked="hold")
    work.interrupted()
    run(work, here)
    assert parked(job) == [None]


def test_much_is_moved_in_parts(here: Connection, monkeypatch: pytest.MonkeyPatch, boot: Boot) -> None:
    for module in ("dispatch.holder", "jobs.leases.held"):
        monkeypatch.setattr(f"{module}.BATCH", 2)
    work = Holder()
    made, jobs = holds.hold("type", "test.noop"), [due() for _ in range(5)]
    assert [run(work, here) for _ in range(3)] == [2, 2, 1]
    holds.lift(made)
    assert [run(work, here) for _ in range(3)] == [2, 2, 1]
    assert parked(*jobs) == [None] * 5


def test_a_job_of_a_held_type_or_group_is_not_claimed_though_it_is_not_parked_yet(here: Connection) -> None:
    mine = process(here)
    held = [due("test.echo", queue="q"), due(group="g", queue="q")]
    free = [due(queue="q"), due(queue="q", group="other")]
    holds.hold("type", "test.echo")
    holds.hold("group", "g")
    _long_ago(here)
    come_due(here)
    taken = {each.held.job_id for each in take(here, "q", mine)}
    assert taken == {job.id for job in free}
    assert [job.why().headline.code for job in held] == ["held_type", "held_group"]


def test_a_hold_that_has_ended_holds_nothing_back_from_a_claim(here: Connection) -> None:
    job, made = due(queue="q"), holds.hold("type", "test.noop")
    holds.lift(made)
    _long_ago(here)
    come_due(here)
    assert [each.held.job_id for each in take(here, "q", process(here))] == [job.id]


@pytest.mark.parametrize(("scope", "key"), [("all", ""), ("queue", "q"), ("tenant", "acme")])
def test_a_backlog_that_the_claims_let_go_slowly_ends_the_hold_when_it_is_gone(
    here: Connection, work: Holder, scope: str, key: str
) -> None:
    job, other = due(queue="q", tenant="acme"), due(queue="r", tenant="other")
    made = holds.hold(scope, key)
    assert made.since is not None
    holds.lift(made, rate=5)
    came = due(queue="q", tenant="acme")
    run(work, here)
    assert Hold.objects.get().drained_at is None
    (other if scope == "all" else job).cancel()
    if scope == "all":
        job.cancel()
    assert came.state == "queued"
    run(work, here)
    assert Hold.objects.get().drained_at is not None


def test_a_hold_whose_time_is_over_and_that_parked_nothing_is_over(here: Connection, work: Holder) -> None:
    made = holds.hold("queue", "q", until=clock.now() + HOUR)
    run(work, here)
    assert Hold.objects.get().drained_at is None
    Hold.objects.filter(pk=made.pk).update(since=made.since - HOUR, until=clock.now() - SECOND)
    run(work, here)
    assert Hold.objects.get().drained_at is not None


def _long_ago(here: Connection) -> None:
    """`now()` stands still in a test's transaction: what came to pass in it, came to pass before."""
    here.execute("UPDATE jobs_hold SET since = since - interval '1 h', until = until - interval '1 h'")
