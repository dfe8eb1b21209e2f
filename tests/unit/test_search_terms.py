"""The line of a search: read strictly, and what is wrong is said with its place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from jobs.search import times
from jobs.search.terms import FIELDS, MAX_LENGTH, SearchError, Term, parse, quoted

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def said(text: str) -> list[str]:
    return [str(term) for term in parse(text)]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("   ", []),
        ("state:failed", [("state", ("failed",), False)]),
        (
            "state:failed,cancelled  tenant:acme",
            [("state", ("failed", "cancelled"), False), ("tenant", ("acme",), False)],
        ),
        ("-state:completed", [("state", ("completed",), True)]),
        ('group:"spring sale, 2026"', [("group", ("spring sale, 2026",), False)]),
        ('group:"say ""hi""",x', [("group", ('say "hi"', "x"), False)]),
        ("0193b3c0-0000", [("", ("0193b3c0-0000",), False)]),
        ("due:2026-12-01T09:00..2026-12-01T10:00", [("due", ("2026-12-01T09:00..2026-12-01T10:00",), False)]),
        ("type:a", [("type", ("a",), False)]),
        ("-", [("", ("-",), False)]),
        ("payload.order.id:17,18", [("payload.order.id", ("17", "18"), False)]),
        (
            "payload.order.id:17 payload.order.paid:true",
            [("payload.order.id", ("17",), False), ("payload.order.paid", ("true",), False)],
        ),
        (
            "state:queued -tenant:x tenant:y",
            [("state", ("queued",), False), ("tenant", ("x",), True), ("tenant", ("y",), False)],
        ),
    ],
)
def test_a_line_is_read(text: str, terms: list[tuple[str, tuple[str, ...], bool]]) -> None:
    assert [(term.name, term.values, term.negated) for term in parse(text)] == terms


@pytest.mark.parametrize(
    ("text", "place", "told", "hint"),
    [
        ("stat:failed", (0, 4), "There is no term", "Did you mean state:?"),
        ("tenant:acme campaign:z", (12, 20), "There is no term", "Did you mean group:?"),
        ("xyzzy:1", (0, 5), "There is no term", "There are id, tenant"),
        ("state:", (0, 6), "has no value", "scheduled, queued"),
        ("state:a,,b", (0, 8), "has no value", ""),
        ("state:a, b", (0, 8), "has no value", ""),
        ('group:"open', (6, 11), "not closed", ""),
        ('gr"oup', (2, 3), "middle of a word", ""),
        ("a,b", (1, 2), "A comma", "state:queued,running"),
        ('group:a"b', (7, 8), "middle of a value", "quotes"),
        ('group:"a"b', (9, 10), "comma or a space", ""),
        ("payloads.id:1", (0, 11), "There is no term", "Did you mean payload:?"),
        ("state.x:1", (0, 7), "There is no term", "Did you mean state:?"),
        ("payload.id:", (0, 11), "has no value", "that its type declares searchable"),
        ("payload.id:1 payload.id:2", (13, 25), "a second time", "payload.id:1,2"),
        ("-payload.id:1", (0, 11), "cannot be excluded", "tenant, type, queue, state"),
        ("run_at:today", (0, 6), "There is no term", "Did you mean run:?"),
        ("-group:x", (0, 6), "cannot be excluded", "tenant, type, queue, state"),
        ("-word", (0, 5), "with a name", "-state:completed"),
        ("state:a state:b", (8, 15), "a second time", "state:a,b"),
        ("a\0b", (1, 2), "Null characters", ""),
        ("x" * 501, (500, 501), "at most 500 characters", ""),
        (" ".join(f'"{n}"' for n in range(21)), (90, 94), "at most 20 terms", ""),
        ("id:" + ",".join("a" * 51), (103, 104), "at most 50 values", ""),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    text: str, place: tuple[int, int], told: str, hint: str
) -> None:
    with pytest.raises(SearchError) as caught:
        parse(text)
    error = caught.value
    assert (error.start, error.end) == place
    assert told in error.message
    assert hint in error.hint


def test_the_pointer_marks_what_is_wrong() -> None:
    with pytest.raises(SearchError) as caught:
        parse("tenant:acme stat:failed")
    assert caught.value.pointer("tenant:acme stat:failed") == "tenant:acme stat:failed\n            ^^^^"
    assert str(caught.value).startswith("at character 13: There is no term “stat:”.")


@given(st.text(alphabet=st.sampled_from('abst:,"- \\\0é'), max_size=40) | st.text(max_size=MAX_LENGTH + 5))
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    problem: SearchError | None = None
    terms: list[Term] = []
    try:
        terms = parse(text)
    except SearchError as error:
        problem = error
    if problem is not None:
        assert 0 <= problem.start <= problem.end <= max(len(text), 1)
        assert problem.message
        assert problem.pointer(text).startswith(text)
    again = parse(" ".join(map(str, terms)), limit=10_000)
    assert [(term.name, term.values) for term in again] == [(term.name, term.values) for term in terms]


@given(
    st.sampled_from(sorted(FIELDS)),
    st.lists(st.text(min_size=1, max_size=20).filter(lambda t: "\0" not in t), min_size=1, max_size=4),
)
def test_what_is_written_out_means_the_same(name: str, values: list[str]) -> None:
    line = str(Term(name, tuple(values), 0, 0))
    (term,) = parse(line)
    assert (term.name, term.values) == (name, tuple(values))


@given(st.text(min_size=1, max_size=30).filter(lambda t: "\0" not in t))
def test_a_quoted_value_alone_is_that_value(value: str) -> None:
    (term,) = parse(f"group:{quoted(value)}")
    assert term.values == (value,)


def window(text: str, zone: str = "UTC") -> tuple[str, str]:
    with timezone.override(zone):
        (term,) = parse(f"due:{text}")
        found = times.window(term, NOW)
    return f"{found.start.astimezone(UTC):%m-%dT%H:%M}", f"{found.end.astimezone(UTC):%m-%dT%H:%M}"


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", "11-30T00:00", "12-01T00:00"),
        ("yesterday", "11-29T00:00", "11-30T00:00"),
        ("tomorrow", "12-01T00:00", "12-02T00:00"),
        ("yesterday..tomorrow", "11-29T00:00", "12-02T00:00"),
        ("last-24h", "11-29T12:00", "11-30T12:00"),
        ("next-90m", "11-30T12:00", "11-30T13:30"),
        ("-2d..now", "11-28T12:00", "11-30T12:00"),
        ("now..+1w", "11-30T12:00", "12-07T12:00"),
        ("2026-12-01", "12-01T00:00", "12-02T00:00"),
        ("2026-12-01..2026-12-03", "12-01T00:00", "12-04T00:00"),
        ("09:30..now", "11-30T09:30", "11-30T12:00"),
        ("2026-11-30T09:00..2026-11-30T10:00:30", "11-30T09:00", "11-30T10:00"),
        ("2026-11-30T09:00Z..now", "11-30T09:00", "11-30T12:00"),
    ],
)
def test_a_window_is_read(text: str, start: str, end: str) -> None:
    assert window(text) == (start, end)


def test_days_and_times_are_in_the_zone_of_who_asks() -> None:
    assert window("today", "Asia/Tokyo") == ("11-29T15:00", "11-30T15:00")
    assert window("09:00..10:00", "Europe/Berlin") == ("11-30T08:00", "11-30T09:00")
    assert window("2026-11-30T09:00Z..now", "Asia/Tokyo") == ("11-30T09:00", "11-30T12:00")


def test_a_day_of_25_hours_is_whole() -> None:
    with timezone.override("Europe/Berlin"):
        (term,) = parse("due:2026-10-25")
        found = times.window(term, NOW)
    assert found.end - found.start == timedelta(hours=25)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("banana", "is no time"),
        ("2026-13-01", "is no time"),
        ("2026-02-30", "is no time"),
        ("25:00..now", "is no time"),
        ("now", "a moment, not a window"),
        ("-2d", "a moment, not a window"),
        ("..now", "a beginning and an end"),
        ("now..", "a beginning and an end"),
        ("now..-1h", "ends before it begins"),
        ("now..now", "ends before it begins"),
        ("-40d..now", "at most 31 days"),
        ("0001-01-01", "so far away"),
        ("-99999w..now", "so far away"),
        ("today,tomorrow", "takes one window"),
    ],
)
def test_what_is_no_window_is_refused(text: str, told: str) -> None:
    (term,) = parse(f"due:{text}")
    with pytest.raises(SearchError) as caught:
        times.window(term, NOW)
    assert told in caught.value.message
    assert (caught.value.start, caught.value.end) == (term.start, term.end)


@given(st.text(max_size=40).filter(lambda t: t and "\0" not in t))
def test_any_text_is_a_window_or_refused(text: str) -> None:
    try:
        found = times.window(Term("due", (text,), 0, len(text)), NOW)
    except SearchError:
        return
    assert found.start < found.end
