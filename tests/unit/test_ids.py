from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.ids import EPOCH, ceil_ms, day_of_id, derived_id, due_of, first_id, new_id

MS = timedelta(milliseconds=1)
moments = st.datetimes(
    EPOCH.replace(tzinfo=None), datetime(9999, 12, 30), timezones=st.just(UTC)  # noqa: DTZ001
).map(ceil_ms)  # fmt: skip


@settings(deadline=None)
@given(moments)
def test_a_range_of_due_times_is_a_range_of_ids(moment: datetime) -> None:
    for job_id in (new_id(moment), derived_id(moment, "a")):
        assert first_id(moment) < job_id < first_id(moment + MS)
    assert due_of(first_id(moment)) == moment


@settings(deadline=None)
@given(moments)
def test_the_day_of_an_id_is_that_of_its_due_time(moment: datetime) -> None:
    assert day_of_id(new_id(moment)) == due_of(new_id(moment)).date() == moment.date()


@pytest.mark.parametrize(
    ("moment", "day"),
    [
        (EPOCH, date(1970, 1, 1)),
        (datetime(2026, 12, 1, tzinfo=UTC), date(2026, 12, 1)),
        (datetime(2026, 12, 2, tzinfo=UTC) - MS, date(2026, 12, 1)),
        (datetime(2028, 2, 29, 23, 59, 59, 999000, tzinfo=UTC), date(2028, 2, 29)),
    ],
)
def test_a_day_begins_and_ends_at_midnight_utc(moment: datetime, day: date) -> None:
    assert day_of_id(new_id(moment)) == day


def test_an_id_that_names_no_job_has_no_day() -> None:
    with pytest.raises(OverflowError):
        day_of_id(UUID(int=(1 << 128) - 1))
