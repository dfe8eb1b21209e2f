"""What a line finds: exactly the jobs that it describes, in pages that lead back, and how much was looked at."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from jobs import clock, operator, search
from jobs.models import Job, Outcome, Process
from jobs.newjob import NewJob
from jobs.search import SearchError, compile_query, find, guard
from jobs.search.count import Count, count
from jobs.search.find import Walk, place_text, read_place
from jobs.search.guard import TooSlow
from jobs.search.scan import scan
from jobs.search.window import Window
from jobs.tenants import tenant_ids
from tests.db.test_admin_tools import user_with
from tests.db.verbs import SITUATIONS, job_so
from tests.factories import Connection, schedule

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def asked(line: str, **options: Any) -> search.Query:
    return compile_query(line, clock.now(), **options)


def found(line: str, **options: Any) -> list[Any]:
    return [job.pk for job in find(asked(line, **options)).jobs]


@pytest.fixture
def world(here: Connection) -> dict[str, Any]:
    """A job in every situation, of two tenants, types, queues and groups in turn."""
    jobs = {}
    for n, situation in enumerate(SITUATIONS):
        jobs[situation] = job_so(
            situation,
            here,
            tenant=("acme", "beta")[n % 2],
            group=("red", "blue", None)[n % 3],
            queue=f"q{n}",
            unique_key=f"k{n}",
        )
    return jobs


PREDICATES: dict[str, Callable[[Any], bool]] = {
    "state:failed": lambda job: job.state == "failed",
    "state:failed,cancelled": lambda job: job.state in ("failed", "cancelled"),
    "state:completed,running": lambda job: job.state in ("completed", "running"),
    "state:scheduled": lambda job: job.state == "scheduled",
    "state:queued": lambda job: job.state == "queued",
    "state:retryable,scheduled": lambda job: job.state in ("retryable", "scheduled"),
    "-state:completed": lambda job: job.state != "completed",
    "-state:scheduled,queued,running,retryable": lambda job: job.state in ("completed", "failed", "cancelled"),
    "tenant:acme": lambda job: job.tenant.slug == "acme",
    "-tenant:acme": lambda job: job.tenant.slug != "acme",
    "tenant:acme,beta": lambda job: True,
    "tenant:acme state:failed": lambda job: job.tenant.slug == "acme" and job.state == "failed",
    "tenant:beta -state:queued": lambda job: job.tenant.slug == "beta" and job.state != "queued",
    "group:red": lambda job: job.group == "red",
    "group:red,blue state:completed,failed": lambda job: bool(job.group) and job.state in ("completed", "failed"),
    "queue:q1,q2,q3": lambda job: job.queue in ("q1", "q2", "q3"),
    "-queue:q1 state:queued,running": lambda job: job.queue != "q1" and job.state in ("queued", "running"),
    "-queue:q5 state:failed,cancelled": lambda job: job.queue != "q5" and job.state in ("failed", "cancelled"),
    "type:test.*": lambda job: True,
    "-type:test.*": lambda job: False,
    "type:test.noop": lambda job: True,
    "error:0123456789abcdef": lambda job: job.state == "failed",
    "error:nothing": lambda job: False,
    "key:k1,k4": lambda job: job.unique_key in ("k1", "k4") and job.state not in ("completed", "failed", "cancelled"),
    "finished:today": lambda job: job.state in ("completed", "failed", "cancelled"),
    "finished:today state:completed": lambda job: job.state == "completed",
    "finished:today tenant:beta": lambda job: job.tenant.slug == "beta" and job.state in ("completed", "failed", "cancelled"),
    "finished:2026-01-01": lambda job: False,
    "cron:5": lambda job: False,
    "cron:5 state:failed": lambda job: False,
    "action:12": lambda job: False,
    "is:overdue": lambda job: False,
    "run:-1h..+2d": lambda job: job.state in ("scheduled", "queued", "retryable"),
    "run:+30m..+2h": lambda job: job.state == "retryable" or (job.state == "scheduled" and job.due_at < clock.now()),
    "run:-1h..now": lambda job: job.state == "queued",
}  # fmt: skip


@pytest.mark.parametrize("line", PREDICATES)
def test_a_line_finds_exactly_what_it_describes(world: dict[str, Any], line: str) -> None:
    jobs = list(Job.objects.with_state(*_wide()).select_related("tenant"))
    expected = sorted((job.pk for job in jobs if PREDICATES[line](job)), reverse=True)
    whole = f"{line} due:-2d..+2d" if "key:" not in line else line
    answer = find(asked(whole))
    assert sorted((job.pk for job in answer.jobs), reverse=True) == expected
    if "finished" not in line:
        assert [job.pk for job in answer.jobs] == expected
    assert answer.is_complete
    assert scan(asked(whole), None, 100).ids == sorted(expected) or "finished" in line
    assert sorted(scan(asked(whole), None, 100).ids) == sorted(expected)
    assert count(asked(whole)) == Count(len(expected), "exact")


def _wide() -> tuple[Any, Any]:
    now = clock.now()
    return now - timedelta(days=2), now + timedelta(days=2)


def test_the_page_says_of_each_job_what_it_is_now(world: dict[str, Any]) -> None:
    answer = {job.pk: job for job in find(asked("due:-2d..+2d")).jobs}
    for job in world.values():
        assert answer[job.pk].state == job.state
    assert answer[world["failed"].pk].error == "ValueError: no"
    assert answer[world["retryable"].pk].attempt == 1


def test_what_an_operator_has_moved_is_found_by_the_number_of_the_command(here: Connection) -> None:
    jobs = [job_so("queued", here), job_so("scheduled", here), job_so("running", here)]
    action, _ = operator.act(user_with("cancel_job"), "cancel", [job.pk for job in jobs])
    assert found(f"action:{action.pk} due:-1d..+2d") == sorted((job.pk for job in jobs), reverse=True)


def test_what_runs_in_a_process_and_what_is_overdue_is_found(here: Connection) -> None:
    job, late = job_so("running", here), job_so("queued", here)
    worker = Process.objects.get(kind="worker").pk
    assert found(f"worker:{worker}") == [job.pk]
    here.execute("UPDATE jobs_queueentry SET run_at = now() - interval '1 min' WHERE job_id = %s", [late.pk])
    assert found("is:overdue") == [late.pk]


@pytest.mark.parametrize(
    "line",
    ["due:now..+2h", "group:g due:now..+2h", "state:scheduled due:now..+2h", "-state:failed due:now..+2h"],
)
def test_pages_are_disjoint_complete_and_lead_back(here: Connection, line: str) -> None:
    due = clock.now() + HOUR
    new = [NewJob(job_type="test.noop", due_at=due + timedelta(seconds=n // 7), group="g") for n in range(23)]
    ids = sorted((job_id for job_id, _ in Job.objects.schedule_many(new)), reverse=True)
    _walk_through(asked(line), ids)


def test_pages_by_end_are_disjoint_complete_and_lead_back(here: Connection) -> None:
    new = [NewJob(job_type="test.noop", delay=HOUR) for _ in range(23)]
    ids = [job_id for job_id, _ in Job.objects.schedule_many(new)]
    Job.objects.filter(pk__in=ids).cancel()
    ends = {job_id: clock.now() - timedelta(seconds=n // 5) for n, job_id in enumerate(ids)}
    for job_id, at in ends.items():
        Outcome.objects.filter(job_id=job_id).update(finished_at=at)
    rows = sorted(Outcome.objects.values_list("finished_at", "job_id"), reverse=True)
    _walk_through(asked("finished:-1h..+1h"), [job_id for _, job_id in rows])


def _walk_through(query: search.Query, ids: list[Any]) -> None:
    pages = [find(query, size=5)]
    while pages[-1].older:
        pages.append(find(query, after=read_place(place_text(pages[-1].older)), size=5))
    assert [job.pk for page in pages for job in page.jobs] == ids
    assert pages[0].newer is None
    for later, page in zip(reversed(pages[:-1]), reversed(pages[1:]), strict=True):
        assert page.newer
        back = find(query, before=read_place(place_text(page.newer)), size=5)
        assert [job.pk for job in back.jobs] == [job.pk for job in later.jobs]


def test_what_runs_at_another_time_than_it_was_due_is_found_by_that(here: Connection) -> None:
    job = schedule(due_at=clock.now() + timedelta(days=2))
    Job.objects.filter(pk=job.pk).reschedule(clock.now() + timedelta(hours=2))
    other = schedule(due_at=clock.now() + timedelta(hours=2))
    assert found("run:+1h..+3h") == [job.pk, other.pk]
    assert found("run:+1h..+3h due:now..+1d") == [other.pk]
    assert found("run:+1d..+3d") == []


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[Window]:
    """Looking at more than an hour at once takes too long; the windows that were looked at."""
    seen: list[Window] = []
    look = Walk._look

    def limited(self: Walk, window: Window, limit: int, patience: timedelta) -> Any:
        if window.end - window.start > HOUR:
            raise TooSlow
        seen.append(window)
        return look(self, window, limit, patience)

    monkeypatch.setattr(Walk, "_look", limited)
    return seen


@pytest.mark.parametrize("line", ["due:-2d..now", "type:test.echo payload.value:x due:-2d..now"])
def test_a_search_that_is_too_slow_says_how_far_it_looked_and_goes_on_there(
    here: Connection, slow: list[Window], line: str
) -> None:
    now = clock.now()
    ids = [schedule("test.echo", {"value": "x"}, due_at=now - n * HOUR).pk for n in (1, 2, 20, 40)]
    query, jobs, place, rounds = asked(line), list[Any](), None, 0
    while True:
        answer = find(query, after=place)
        jobs += [job.pk for job in answer.jobs]
        place, rounds = answer.older, rounds + 1
        if place is None:
            break
        assert answer.back_to
        assert answer.back_to > query.due.start
    assert jobs == ids
    assert rounds > 1
    for one, two in pairwise(slow):
        assert two.end <= one.start or two.start <= one.start


def test_a_scan_that_is_too_slow_goes_on_where_it_got(here: Connection, slow: list[Window]) -> None:
    now = clock.now()
    ids = [schedule(due_at=now - n * HOUR).pk for n in (40, 20, 2, 1)]
    query, seen, cursor = asked("due:-2d..now"), list[Any](), None
    for _ in range(200):
        step = scan(query, cursor, 3)
        seen += step.ids
        if step.cursor is None:
            break
        assert cursor is None or step.cursor > cursor
        cursor = step.cursor
    assert seen == ids


def test_a_scan_that_gets_nowhere_says_so(here: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    job = schedule()

    def never(*args: Any) -> Any:
        raise TooSlow

    monkeypatch.setattr(Walk, "_look", never)
    with pytest.raises(TooSlow):
        scan(asked("due:-2d..+2d"), job.pk, 3)


def test_a_statement_that_hangs_is_given_up(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule()
    monkeypatch.setattr(guard, "PATIENCE", timedelta(milliseconds=50))
    with connection.transaction():
        connection.execute("LOCK TABLE jobs_job IN ACCESS EXCLUSIVE MODE")
        answer = find(asked("due:-1d..+1d"))
    assert (answer.jobs, answer.is_complete) == ([], False)


def test_a_count_is_exact_while_it_is_cheap_and_then_an_estimate(here: Connection) -> None:
    Job.objects.schedule_many([NewJob(job_type="test.noop", delay=HOUR)] * 30)
    query = asked("due:now..+2h")
    assert count(query) == Count(30, "exact")
    found = count(query, cap=10)
    assert found.how in ("at least", "estimated")
    assert str(Count(10_000, "at least")) == "more than 10,000"
    assert str(Count(1_234_567, "estimated")) == "≈ 1.2 M"
    assert str(Count(45_678, "estimated")) == "≈ 46,000"
    assert str(Count(None, "unknown")) == "many"
    assert str(Count(1204, "exact")) == "1,204"


def test_a_count_that_takes_too_long_is_not_waited_for(connection: Connection) -> None:
    schedule()
    with connection.transaction():
        connection.execute("LOCK TABLE jobs_job IN ACCESS EXCLUSIVE MODE")
        assert count(asked("due:-1d..+1d")) == Count(None, "unknown")


def test_a_word_alone_is_what_bears_its_name(world: dict[str, Any]) -> None:
    assert str(asked("acme")).startswith("tenant:acme ")
    assert str(asked("test.noop")).startswith("type:test.noop ")
    assert str(asked("k1")) == f"id:{world['queued'].pk}"
    schedule(tenant="test.echo")
    with pytest.raises(SearchError) as caught:
        asked("test.echo")
    assert caught.value.hint == "Write type:test.echo or tenant:test.echo or queue:test.echo"
    with pytest.raises(SearchError, match="no key, type, tenant or queue has this name"):
        asked("nothing")


def test_words_that_mean_the_same_term_are_not_dropped(world: dict[str, Any]) -> None:
    for line, either in (
        ("acme beta", "tenant:acme,beta"),
        ("tenant:acme beta", "tenant:acme,beta"),
        ("test.noop type:test.echo", "type:test.noop,test.echo"),
    ):
        with pytest.raises(SearchError, match="is here a second time") as caught:
            asked(line)
        assert caught.value.hint == f"For “one or the other” write {either}"


def test_a_line_spelled_out_finds_the_same(world: dict[str, Any]) -> None:
    for line in (
        "tenant:acme -state:failed due:-2d..+2d",
        'group:red,"a b" due:-2d..+2d',
        "finished:today",
        "run:-1h..+3h",
        "type:test.echo payload.order.id:17,18",
        "k1",
    ):
        query = asked(line)
        again = compile_query(str(query), clock.now() + timedelta(days=30), limit=1000)
        assert [job.pk for job in find(again).jobs] == [job.pk for job in find(query).jobs]
        assert str(again) == str(query)


@pytest.mark.parametrize(
    ("line", "told", "hint"),
    [
        ("state:fialed", "There is no state", "Did you mean failed?"),
        ("state:x", "There is no state", "There are scheduled"),
        ("type:tset.*", "No registered type is like", ""),
        ("finished:today state:queued", "about jobs that have ended", ""),
        ("error:abc state:completed", "about failed jobs", ""),
        ("worker:1 state:queued", "about running jobs", ""),
        ("is:overdue state:running", "about queued jobs", ""),
        ("is:late", "takes one of overdue, held and stuck", "is:overdue or is:held"),
        ("is:held,stuck", "takes one of overdue, held and stuck", "Did you mean held?"),
        ("is:stuck state:queued", "about running jobs", ""),
        ("ran:>1m state:scheduled", "about jobs that run or have ended", ""),
        ("late:soon", "is no length of time", "late:>5m"),
        ("late:>400d", "longer than 366 days", ""),
        ("attempt:x", "is no number", "attempt:2..5"),
        ("attempt:5..2", "ends before it begins", ""),
        ("-state:scheduled,queued,running,retryable,completed,failed,cancelled", "No state is left", ""),
        ("cron:x", "takes numbers", ""),
        ("worker:99999999999999999999", "takes numbers", ""),
        ("action:-1", "takes numbers", ""),
        ("id:x", "is no job id", ""),
        ("tenant:acmee", "There is no tenant", "Did you mean acme?"),
        ("payload:x", "names no path", "payload.order.id:17"),
        ("payload.value:x", "among the jobs of a type", "Write type:test.echo beside it"),
        ("payload.value:x -type:test.noop", "among the jobs of a type", "Write type:test.echo beside it"),
        ("payload.nothing:x", "among the jobs of a type", "No type declares it"),
        ("type:test.noop payload.value:x", "does not declare “value”", "It declares nothing"),
        (
            "type:test.echo,test.noop payload.value:x",
            "type “test.noop” does not declare",
            "It declares nothing",
        ),
        ("type:test.echo payload.valu:x", "does not declare “valu”", "Did you mean payload.value:?"),
        ("type:test.echo payload.order:x", "does not declare “order”", "Did you mean payload.order.id:?"),
        ("type:test.echo payload.order.id.x:1", "does not declare", ""),
        ("type:test.echo payload.a:1", "does not declare “a”", "It declares value, order.id, order.paid"),
        ("type:external payload.value:x", "type “external” does not declare", ""),
        ("run:today state:running", "about jobs that wait", ""),
        ("run:today finished:today", "about jobs that wait", ""),
        ("run:now", "a moment, not a window", ""),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(
    here: Connection, line: str, told: str, hint: str
) -> None:
    tenant_ids(["acme"])
    with pytest.raises(SearchError) as caught:
        asked(line)
    assert told in caught.value.message
    assert hint in caught.value.hint
    assert 0 <= caught.value.start < caught.value.end <= len(line)


def test_a_type_that_is_not_registered_is_searched_and_told() -> None:
    query = asked("type:test.noob")
    assert query.notes == ("No type “test.noob” is registered here. Did you mean test.noop?",)


def test_a_key_that_nobody_holds_is_told(world: dict[str, Any]) -> None:
    query = asked("key:unheard-of")
    assert "No job holds this key now" in query.notes[0]
    assert find(query).jobs == []


def test_a_scope_bounds_every_term(world: dict[str, Any]) -> None:
    acme = tenant_ids(["acme"])["acme"]
    mine = {job.pk for job in world.values() if job.tenant_id == acme}
    lines = [
        "",
        "-tenant:acme",
        "state:failed,cancelled,completed",
        "finished:today",
        "key:k0,k1,k2,k3,k4,k5,k6,k7",
        "-state:queued",
    ]
    for line in lines:
        assert set(found(f"{line} due:-2d..+2d".strip() if "key" not in line else line, scope=[acme])) <= mine
    with pytest.raises(SearchError, match="There is no tenant"):
        asked("tenant:beta", scope=[acme])
    assert found("due:-2d..+2d", scope=[]) == []
