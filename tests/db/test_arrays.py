"""Array parameters in binary: what is sent is what arrives."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import arrays

Connection = psycopg.Connection[Any]
quietly = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001


def arrived(here: Connection, array: Any, kind: str) -> list[Any]:
    """An array as the server has understood it, in the format of text."""
    row = here.execute(f"SELECT %s::{kind}[]", [array]).fetchone()
    assert row
    found: list[Any] = row[0]
    return found


@quietly
@given(st.lists(st.none() | st.uuids()))
def test_uuids_arrive(here: Connection, values: list[UUID | None]) -> None:
    assert arrived(here, arrays.uuids(values), "uuid") == values


@quietly
@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_numbers_arrive(here: Connection, values: list[int | None]) -> None:
    assert arrived(here, arrays.int8s(values), "bigint") == values


@quietly
@given(st.lists(st.none() | moments))
def test_moments_arrive(here: Connection, values: list[datetime | None]) -> None:
    assert arrived(here, arrays.timestamps(values), "timestamptz") == values


@quietly
@given(st.lists(st.none() | texts))
def test_texts_arrive(here: Connection, values: list[str | None]) -> None:
    assert arrived(here, arrays.texts(values), "text") == values


def test_a_moment_of_another_zone_is_the_same_moment(here: Connection) -> None:
    moment = datetime(2026, 12, 1, 1, 30, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    assert arrived(here, arrays.timestamps([moment]), "timestamptz") == [moment]


def test_each_kind_of_array_says_what_it_is(here: Connection) -> None:
    """An empty one too: the server need not guess."""
    kinds: dict[str, Callable[[list[Any]], Any]] = {
        "uuid[]": arrays.uuids, "bigint[]": arrays.int8s, "timestamp with time zone[]": arrays.timestamps,
        "text[]": arrays.texts,
    }  # fmt: skip
    for name, kind in kinds.items():
        row = here.execute("SELECT pg_typeof(%(a)s)::text, cardinality(%(a)s)", {"a": kind([])}).fetchone()
        assert row == (name, 0)


def test_they_are_counted_from_one_as_any_array(here: Connection) -> None:
    values = [uuid4() for _ in range(3)]
    row = here.execute(
        "SELECT array_lower(%(a)s, 1), array_upper(%(a)s, 1), array_ndims(%(a)s), (%(a)s)[2:3]",
        {"a": arrays.uuids(values)},
    ).fetchone()
    assert row == (1, 3, 1, values[1:])


def test_any_iterable_will_do(here: Connection) -> None:
    assert arrived(here, arrays.int8s(iter((1, 2))), "bigint") == [1, 2]


def test_a_number_that_is_too_large_is_refused() -> None:
    with pytest.raises((struct.error, OverflowError)):
        arrays.int8s([2**63])


def test_a_connection_that_binds_on_the_client_refuses_them(here: Connection) -> None:
    """Such as Django's own: `db.ServerBound` is for that."""
    with pytest.raises(psycopg.ProgrammingError):
        psycopg.ClientCursor(here._raw).execute("SELECT %s", [arrays.int8s([1])])  # type: ignore[attr-defined]
