"""Terms that are judged row by row: how late, how long, which attempt, held and stuck."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobs import clock, holds, operations
from jobs.search import SearchError, compile_query, find
from jobs.search.count import Count, count
from tests.db.test_admin_tools import user_with
from tests.db.verbs import job_so
from tests.factories import Connection, schedule

pytestmark = pytest.mark.django_db
WIDE = "due:-2d..+2d"


def found(line: str) -> set[Any]:
    query = compile_query(f"{line} {WIDE}", clock.now())
    ids = {job.pk for job in find(query).jobs}
    assert count(query) == Count(len(ids), "exact")
    return ids


def set_entry(here: Connection, job: Any, **moments: str) -> None:
    """Columns of its entry to so long ago."""
    for column, ago in moments.items():
        here.execute(
            f"UPDATE jobs_queueentry SET {column} = now() - %s::interval WHERE job_id = %s", [ago, job.pk]
        )


def set_outcome(here: Connection, job: Any, *, late: str, ran: str, attempt: int = 1) -> None:
    here.execute(
        "UPDATE jobs_outcome outcome SET started_at = greatest(job.due_at, job.created_at) + %s::interval, "
        "finished_at = greatest(job.due_at, job.created_at) + %s::interval + %s::interval, attempt = %s "
        "FROM jobs_job job WHERE job.id = outcome.job_id AND outcome.job_id = %s",
        [late, late, ran, attempt, job.pk],
    )


def test_late_is_who_started_or_waits_after_its_time(here: Connection) -> None:
    queued, running, ended, again, on_time, timer, later = (
        job_so(situation, here, queue=f"q{n}")
        for n, situation in enumerate(
            ["queued", "running", "completed", "failed", "completed", "scheduled", "retryable"]
        )
    )
    set_entry(here, queued, run_at="10 min")
    set_entry(here, running, run_at="20 min", claimed_at="12 min")
    set_outcome(here, ended, late="7 min", ran="1 s")
    set_outcome(here, again, late="70 min", ran="1 s", attempt=2)
    set_outcome(here, on_time, late="1 s", ran="1 s")
    assert found("late:>5m") == {queued.pk, running.pk, ended.pk}
    assert found("late:>9m") == {queued.pk}
    assert found("late:>5m state:running") == {running.pk}
    assert found("late:6m..510s") == {running.pk, ended.pk}
    assert found("late:<1m") == {on_time.pk}
    assert found("late:<1m -state:completed") == set()  # what is to come is not late
    assert not {timer.pk, later.pk} & found("late:<366d")


def test_a_timer_that_nobody_moved_is_late(here: Connection) -> None:
    job = schedule(due_at=clock.now() + timedelta(seconds=30))
    query = compile_query(f"late:>5m {WIDE}", clock.now() + timedelta(minutes=10))
    assert [each.pk for each in find(query).jobs] == [job.pk]


def test_ran_is_how_long_the_last_attempt_took_or_takes(here: Connection) -> None:
    queued, running, ended = (job_so(name, here) for name in ("queued", "running", "failed"))
    set_entry(here, running, claimed_at="15 min")
    set_outcome(here, ended, late="0 s", ran="20 min", attempt=3)
    assert found("ran:>10m") == {running.pk, ended.pk}
    assert found("ran:>16m") == {ended.pk}
    assert found("ran:<16m") == {running.pk}
    assert found("ran:>10m state:failed") == {ended.pk}
    assert queued.pk not in found("ran:<366d")


def test_attempts_are_those_that_were_used(here: Connection) -> None:
    timer, queued, retryable, ended = (
        job_so(name, here) for name in ("scheduled", "queued", "retryable", "failed")
    )
    set_outcome(here, ended, late="0 s", ran="1 s", attempt=5)
    assert found("attempt:0") == {timer.pk, queued.pk}
    assert found("attempt:>0") == {retryable.pk, ended.pk}
    assert found("attempt:2..5") == {ended.pk}
    assert found("attempt:1 state:retryable") == {retryable.pk}


@pytest.mark.parametrize("scope", ["queue", "tenant", "type", "group", "all"])
def test_held_is_what_a_hold_keeps_from_starting(here: Connection, scope: str) -> None:
    running = job_so("running", here, tenant="acme", queue="mail", group="red")
    held = schedule(tenant="acme", queue="mail", group="red")
    free = schedule("test.echo", tenant="beta", queue="other", group="blue")
    key = {"queue": "mail", "tenant": "acme", "type": "test.noop", "group": "red", "all": ""}[scope]
    assert found("is:held") == set()
    holds.hold(scope, key)
    assert found("is:held") == {held.pk} | ({free.pk} if scope == "all" else set())
    assert running.pk not in found("is:held")


def test_that_nothing_is_held_is_told() -> None:
    assert compile_query("is:held", clock.now()).notes == ("Nothing is held now.",)


def test_stuck_is_what_a_process_has_that_is_gone(here: Connection) -> None:
    alive, stuck, ended = (job_so("running", here, queue=f"q{n}") for n in range(3))
    for job, column in ((stuck, "lease_expires_at"), (ended, "ended_at")):
        here.execute(
            f"UPDATE jobs_process SET {column} = now() - interval '1 s' WHERE id = "
            "(SELECT process_id FROM jobs_queueentry WHERE job_id = %s)",
            [job.pk],
        )
    assert found("is:stuck") == {stuck.pk, ended.pk}
    here.execute("DELETE FROM jobs_process WHERE id = (SELECT process_id FROM jobs_queueentry WHERE job_id = %s)",
                 [alive.pk])  # fmt: skip
    assert alive.pk in found("is:stuck")


def test_a_range_alone_is_no_target_of_an_operation(here: Connection) -> None:
    boss = user_with("cancel_job", "bulk_job")
    job_so("queued", here)
    with pytest.raises(SearchError, match="on all jobs there are"):
        operations.preview(boss, "cancel", f"attempt:>=0 {WIDE}")
    assert operations.preview(boss, "cancel", f"attempt:>=0 type:test.noop {WIDE}").count.number == 1
    assert operations.preview(boss, "cancel", f"is:held {WIDE}").count.number == 0
