"""Faults other schedulers had, by the ids of the collection of cases (themes TZ and CR).

Where a case's value follows an older rule for daylight saving time, docs/cron.md is what is asserted.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from jobs.cron import Cron, CronError


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _next(cron: Cron, start: str, count: int) -> list[datetime]:
    moment, found = _at(start), []
    for _ in range(count):
        following = cron.next(moment)
        assert following is not None
        assert following > moment
        found.append(following)
        moment = following
    return found


def _prev(cron: Cron, start: str, count: int) -> list[datetime]:
    """Fires before `start`, latest first."""
    moment, found = _at(start), []
    for _ in range(count):
        earlier = cron.prev(moment - timedelta(microseconds=1))
        assert earlier is not None
        assert earlier < moment
        found.append(earlier)
        moment = earlier
    return found


def _times(*texts: str) -> list[datetime]:
    return [_at(text) for text in texts]


def _weekdays(field: str) -> set[str]:
    fires = Cron(f"0 0 * * {field}").between(_at("2026-01-03T23:00Z"), _at("2026-01-10T23:00Z")).fires
    return {f"{fire:%a}" for fire in fires}


def test_tz_01_daily_job_keeps_its_wall_time_after_the_autumn_change() -> None:
    cron = Cron("0 20 * * *", "Europe/Paris")
    expected = _times("2022-10-30T19:00Z", "2022-10-31T19:00Z", "2022-11-01T19:00Z")
    assert _next(cron, "2022-10-30T00:00+02:00", 3) == expected


def test_tz_03_daily_job_fires_once_in_the_night_the_hour_repeats() -> None:
    cron = Cron("30 1 * * *", "America/New_York")
    clock, end, cursor, fired = _at("2025-11-02T00:00-04:00"), _at("2025-11-03T12:00Z"), None, []
    while clock < end:
        due = cron.prev(clock)
        if due is not None and due > (cursor or _at("2025-11-02T04:00Z")):
            fired.append(due)
            cursor = due
        clock += timedelta(seconds=30)
    assert fired == _times("2025-11-02T05:30Z", "2025-11-03T06:30Z")


def test_tz_05_next_and_prev_agree_over_a_shift_of_thirty_minutes() -> None:
    hourly = Cron("0 * * * *", "Australia/Lord_Howe")
    following = hourly.next(_at("2019-10-06T01:43+10:30"))
    assert following == _at("2019-10-05T16:00Z")
    assert hourly.prev(following - timedelta(microseconds=1)) == _at("2019-10-05T14:30Z")
    not_a_match = _at("2019-10-06T02:30+11:00")
    assert hourly.prev(not_a_match) != not_a_match

    fixed = Cron("0 2 * * *", "Australia/Lord_Howe")
    expected = _times("2019-10-05T15:30Z", "2019-10-07T02:00+11:00")
    assert _next(fixed, "2019-10-06T01:43+10:30", 2) == expected


def test_tz_06_a_missing_local_midnight_loses_no_date() -> None:
    expected = _times("2018-11-04T03:00Z")
    assert _next(Cron("0 1 4 11 *", "America/Sao_Paulo"), "2018-11-03T23:00-03:00", 1) == expected
    expected = _times("2018-11-04T01:00-02:00", "2018-11-05T00:00-02:00")
    assert _next(Cron("0 0 * * *", "America/Sao_Paulo"), "2018-11-03T12:00-03:00", 2) == expected
    expected = _times("2025-09-07T01:00-03:00", "2025-09-08T00:00-03:00")
    assert _next(Cron("0 0 * * *", "America/Santiago"), "2025-09-06T12:00-04:00", 2) == expected


def test_tz_08_next_never_returns_its_own_input_in_the_repeated_hour() -> None:
    start = datetime(2017, 10, 29, 3, 45, fold=1, tzinfo=ZoneInfo("Europe/Helsinki"))
    hourly = Cron("30 * * * *", "Europe/Helsinki")
    assert _next(hourly, start.astimezone(UTC).isoformat(), 2) == _times(
        "2017-10-29T02:30Z", "2017-10-29T03:30Z"
    )
    assert hourly.next(start) == _at("2017-10-29T02:30Z")

    fires = _next(Cron("0 1-23/2 * * *", "Europe/London"), "2024-10-27T00:30+01:00", 1000)
    assert fires[:3] == _times("2024-10-27T00:00Z", "2024-10-27T03:00Z", "2024-10-27T05:00Z")
    assert fires == sorted(set(fires))


def test_tz_10_prev_and_next_are_not_an_hour_off_around_the_switch() -> None:
    weekdays = Cron("0 8 * * 1-5", "America/New_York")
    expected = _times("2018-11-02T12:00Z", "2018-11-01T12:00Z")
    assert _prev(weekdays, "2018-11-04T05:00-05:00", 2) == expected
    mondays = Cron("0 8 * * 1", "Europe/Amsterdam")
    expected = _times("2017-10-30T07:00Z", "2017-11-06T07:00Z")
    assert _next(mondays, "2017-10-23T08:00+02:00", 2) == expected


def test_tz_11_a_fire_computed_before_the_change_has_the_offset_of_its_day() -> None:
    assert Cron("4 16 * * *", "America/New_York").next(_at("2025-03-08T16:04-05:00")) == _at(
        "2025-03-09T20:04Z"
    )


def test_tz_13_weekly_on_the_wall_clock_is_what_cron_gives() -> None:
    assert Cron("0 16 * * 2", "Europe/Brussels").next(_at("2019-03-26T16:00+01:00")) == _at(
        "2019-04-02T16:00+02:00"
    )


def test_cr_01_both_day_fields_mean_either() -> None:
    year = Cron("0 0 13 * 5").between(_at("2025-12-31T23:59Z"), _at("2026-12-31T23:59Z"))
    assert (len(year.fires), year.cut) == (61, False)
    days = ("01-01", "01-02", "01-09", "01-15", "01-16", "01-23")
    expected = [_at(f"2026-{day}T04:30Z") for day in days]
    assert _next(Cron("30 4 1,15 * 5"), "2026-01-01T00:00Z", 6) == expected


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 2 *", "0 0 31 4,6,9,11 *"])
def test_cr_03_an_impossible_date_is_refused_with_its_field(text: str) -> None:
    with pytest.raises(CronError, match="never run") as refusal:
        Cron(text)
    assert refusal.value.field == "day of month"


def test_cr_05_prev_knows_the_length_of_february() -> None:
    for start in ("2024-03-02T00:00Z", "2024-03-15T00:00Z", "2024-03-28T00:00Z"):
        assert Cron("0 0 29 * *").prev(_at(start)) == _at("2024-02-29T00:00Z")
    expected = _times("2013-02-16T03:00Z", "2013-01-30T03:00Z", "2013-01-16T03:00Z")
    assert _prev(Cron("0 3 16,30 * *"), "2013-03-01T12:17Z", 3) == expected


def test_cr_06_the_last_day_is_found_in_every_month() -> None:
    days = ("2015-10-31", "2015-11-30", "2015-12-31", "2016-01-31", "2016-02-29", "2016-03-31")
    expected = [_at(f"{day}T00:00Z") for day in days]
    assert _next(Cron("0 0 L * *"), "2015-09-30T00:00Z", 6) == expected
    expected = [_at(f"2024-{day}T00:00Z") for day in ("08-31", "09-30", "10-31", "11-30")]
    assert _next(Cron("0 0 31,L * *"), "2024-08-12T00:00Z", 4) == expected


@pytest.mark.parametrize(
    ("field", "days"),
    [
        ("1-7/2", "Mon Wed Fri Sun"),
        ("0-7/2", "Sun Tue Thu Sat"),
        ("5-7", "Fri Sat Sun"),
        ("7", "Sun"),
        ("2/2", "Tue Thu Sat"),
    ],
)
def test_cr_08_weekday_steps_count_from_the_start_of_the_range(field: str, days: str) -> None:
    assert _weekdays(field) == set(days.split())


@pytest.mark.parametrize("text", ["*/0 * * * *", "1-5/0 * * * *", "*/90 * * * *", "* */25 * * *"])
def test_cr_10_a_step_of_zero_or_beyond_the_field_is_refused(text: str) -> None:
    with pytest.raises(CronError, match="step"):
        Cron(text)


def test_cr_10_a_step_of_the_whole_field_is_accepted_with_a_warning() -> None:
    assert Cron("*/60 * * * *").warnings == ("minute: */60 matches 0 only",)


def test_cr_11_names_and_aliases_in_any_case() -> None:
    assert Cron("0 9 * * Mon-Fri").canonical == "0 9 * * 1,2,3,4,5"
    assert Cron("0 0 1 Jan-Mar/2 *").canonical == "0 0 1 1,3 *"
    assert Cron("@Daily").canonical == "0 0 * * *"
    assert Cron("@hourly").canonical == "0 * * * *"
    assert Cron("@yearly").canonical == "0 0 1 1 *"
    for unknown in ("@every_second", "@reboot"):
        with pytest.raises(CronError) as refusal:
            Cron(unknown)
        assert refusal.value.field == "expression"


_NOT_MINUTES = ("0.5", "-1", "+5", "1_0", "\uff15", "", "5,", ",5", "1--2", "60")


@pytest.mark.parametrize(
    "text",
    [*(f"{minute} * * * *" for minute in _NOT_MINUTES), "0 24 * * *", "0 0 0 * *", "0 0 1 13 *", "0 0 * * 8"],
)
def test_cr_13_odd_numerals_and_values_out_of_range_are_refused(text: str) -> None:
    with pytest.raises(CronError):
        Cron(text)


def test_cr_15_legal_combinations_are_accepted_with_one_meaning() -> None:
    assert Cron("* * 13 * Fri").canonical == "* * 13 * 5"
    assert Cron("5-10/2 * * * *").canonical == "5,7,9 * * * *"
    assert Cron("15,45 6-18/3 * * *").canonical == "15,45 6,9,12,15,18 * * *"
    assert Cron("5/2 * * * *").canonical == Cron("5-59/2 * * * *").canonical
