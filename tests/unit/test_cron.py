"""The API of jobs.cron: what it accepts, how it refuses, what it warns of, and the three rules for the clock's jumps."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from jobs.cron import DST_MODES, MAX_LENGTH, Cron, CronError, zone
from jobs.cron.grammar import parse
from jobs.cron.walls import Walls
from jobs.errors import SchedulerError

NEW_YORK = "America/New_York"
SPRING, AUTUMN = "2025-03-09", "2025-11-02"
BEFORE_JUMPS = datetime(2025, 1, 15, tzinfo=UTC)


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _local(cron: Cron, day: str) -> list[str]:
    """Fires of one local day, as the clock on the wall shows them."""
    tz = ZoneInfo(cron.tz)
    start = datetime.combine(date.fromisoformat(day), datetime.min.time(), tz) - timedelta(seconds=1)
    end = datetime.combine(date.fromisoformat(day) + timedelta(days=1), datetime.min.time(), tz)
    fires = cron.between(start, end - timedelta(seconds=1)).fires
    return [f"{fire.astimezone(tz):%H:%M %Z}" for fire in fires]


# What comes in and what goes out


@pytest.mark.parametrize("method", ["next", "prev"])
def test_a_naive_datetime_is_refused_by_name(method: str) -> None:
    with pytest.raises(CronError, match="aware") as refusal:
        getattr(Cron("@daily"), method)(datetime(2026, 1, 1))  # noqa: DTZ001
    assert refusal.value.field == {"next": "after", "prev": "at"}[method]


@pytest.mark.parametrize("naive", ["start", "end"])
def test_a_naive_end_of_a_range_is_refused_by_name(naive: str) -> None:
    ends = {"start": datetime(2026, 1, 1, tzinfo=UTC), "end": datetime(2026, 1, 2, tzinfo=UTC)}
    ends[naive] = ends[naive].replace(tzinfo=None)
    with pytest.raises(CronError, match="aware") as refusal:
        Cron("@daily").between(ends["start"], ends["end"])
    assert refusal.value.field == naive


def test_what_is_no_datetime_is_refused() -> None:
    with pytest.raises(CronError, match="date"):
        Cron("@daily").next(date(2026, 1, 1))  # type: ignore[arg-type]


def test_any_zone_comes_in_and_utc_goes_out() -> None:
    fire = Cron("30 2 * * *", "Europe/Berlin").next(_at("2026-07-01T09:00+09:00"))
    assert fire == _at("2026-07-01T00:30Z")
    assert fire is not None
    assert fire.tzinfo is UTC


@pytest.mark.parametrize("value", [None, 5, b"* * * * *", ["*"]])
def test_an_expression_that_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(CronError) as refusal:
        Cron(value)  # type: ignore[arg-type]
    assert refusal.value.field == "expression"


def test_errors_belong_to_the_project_and_are_value_errors() -> None:
    with pytest.raises(SchedulerError):
        Cron("nonsense")
    with pytest.raises(ValueError, match="expression: needs 5 fields"):
        Cron("nonsense")


def test_the_longest_expression_is_512_characters() -> None:
    text = "0 0 * * *"
    assert Cron(text.ljust(MAX_LENGTH)).canonical == text
    with pytest.raises(CronError, match="512"):
        Cron(text.ljust(MAX_LENGTH + 1))


# Zones


@pytest.mark.parametrize(
    "key",
    [
        "localtime",
        "posixrules",
        "right/UTC",
        "posix/Europe/Berlin",
        "America",
        "",
        "../UTC",
        "/etc/localtime",
        "Nowhere/Town",
        "x" * 300,
        "U\x00TC",
        "\ud800",
        "zone.tab",
    ],
)
def test_a_zone_that_is_none_everywhere_is_refused(key: str) -> None:
    with pytest.raises(CronError) as refusal:
        Cron("@daily", key)
    assert refusal.value.field == "tz"


@pytest.mark.parametrize("key", [None, 1, UTC])
def test_a_zone_is_given_by_name(key: object) -> None:
    with pytest.raises(CronError, match="name of a time zone"):
        zone(key)  # type: ignore[arg-type]


def test_zone_gives_the_zone() -> None:
    assert zone("Europe/Berlin") is ZoneInfo("Europe/Berlin")


# The dialect, beyond the vectors


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("*/5 9-17 * * MON-FRI", "0,5,10,15,20,25,30,35,40,45,50,55 9,10,11,12,13,14,15,16,17 * * 1,2,3,4,5"),
        ("0 22-4/3 * * *", "0 1,4,22 * * *"),
        ("0 9-9 * * 7", "0 9 * * 0"),
        ("0 0 l,15 * ?", "0 0 15,L * *"),
        ("0 0 ? * 5l,mon#2,7#1,2", "0 0 * * 2,0#1,1#2,5L"),
        ("0-59 */1 1-31 1-12 0-7", "* * * * *"),
        ("*,5 0 * * *", "* 0 * * *"),
        (" \t0\t0 1  * * ", "0 0 1 * *"),
        (" @Weekly ", "0 0 * * 0"),
    ],
)
def test_canonical_text_is_one_spelling_per_schedule(text: str, canonical: str) -> None:
    assert Cron(text).canonical == canonical
    assert Cron(canonical).canonical == canonical


def test_a_full_day_field_that_is_spelled_out_restricts_so_every_day_runs() -> None:
    for text in ("0 0 1-31 * 1", "0 0 */1 * 1", "0 0 31 * 0-6"):
        assert Cron(text).canonical == "0 0 * * *"
        assert any("every day" in warning for warning in Cron(text).warnings)
    assert Cron("0 0 * * 1").canonical == "0 0 * * 1"


def test_last_day_beside_thirty_days_is_not_every_day() -> None:
    cron = Cron("0 0 3-1,L 3 *")
    assert cron.between(_at("2026-02-28T12:00Z"), _at("2026-03-04T12:00Z")).fires == [
        _at("2026-03-01T00:00Z"),
        _at("2026-03-03T00:00Z"),
        _at("2026-03-04T00:00Z"),
    ]


@pytest.mark.parametrize("hours", ["*", "*/1", "0-23", "0/1", "12-11", "0-11,12-23"])
def test_hourly_is_a_question_of_the_set_of_hours(hours: str) -> None:
    assert Cron(f"7 {hours} * * *").is_hourly


@pytest.mark.parametrize("hours", ["*/2", "0-22", "1-23"])
def test_fewer_than_all_hours_are_not_hourly(hours: str) -> None:
    assert not Cron(f"* {hours} * * *").is_hourly


# The three rules for the clock's jumps


@pytest.mark.parametrize(
    ("text", "dst", "day", "fires"),
    [
        ("30 2 * * *", "cron", SPRING, ["03:00 EDT"]),
        ("30 2 * * *", "skip", SPRING, []),
        ("30 2 * * *", "literal", SPRING, []),
        ("*/15 2-3 * * *", "cron", SPRING, ["03:00 EDT", "03:15 EDT", "03:30 EDT", "03:45 EDT"]),
        ("0 2,3 * * *", "skip", SPRING, ["03:00 EDT"]),
        ("0 2,3 * * *", "literal", SPRING, ["03:00 EDT"]),
        ("30 1 * * *", "cron", AUTUMN, ["01:30 EDT"]),
        ("30 1 * * *", "skip", AUTUMN, ["01:30 EDT"]),
        ("30 1 * * *", "literal", AUTUMN, ["01:30 EDT", "01:30 EST"]),
        ("0,30 1-2 * * *", "literal", AUTUMN, ["01:00 EDT", "01:30 EDT", "01:00 EST", "01:30 EST", "02:00 EST", "02:30 EST"]),
        ("0,30 1-2 * * *", "cron", AUTUMN, ["01:00 EDT", "01:30 EDT", "02:00 EST", "02:30 EST"]),
    ],
)  # fmt: skip
def test_new_york_over_both_jumps(text: str, dst: str, day: str, fires: list[str]) -> None:
    assert _local(Cron(text, NEW_YORK, dst), day) == fires


def test_an_hourly_schedule_follows_elapsed_time_except_under_skip() -> None:
    assert len(_local(Cron("0 * * * *", NEW_YORK), AUTUMN)) == 25
    assert len(_local(Cron("0 * * * *", NEW_YORK, "literal"), AUTUMN)) == 25
    assert len(_local(Cron("0 * * * *", NEW_YORK, "skip"), AUTUMN)) == 24
    for dst in DST_MODES:
        assert len(_local(Cron("0 * * * *", NEW_YORK, dst), SPRING)) == 23


@pytest.mark.parametrize(
    ("text", "dst", "at", "expected"),
    [
        # In the second pass: what is later on the clock has been before.
        ("50 1 * * *", "cron", "2025-11-02T06:30Z", "2025-11-02T05:50Z"),
        ("50 1 * * *", "literal", "2025-11-02T06:30Z", "2025-11-02T05:50Z"),
        ("50 1 * * *", "literal", "2025-11-02T06:50Z", "2025-11-02T06:50Z"),
        ("50 1 * * *", "literal", "2025-11-02T05:49Z", "2025-11-01T05:50Z"),
        ("50 * * * *", "cron", "2025-11-02T06:30Z", "2025-11-02T05:50Z"),
        # After the gap: what was dropped is no fire.
        ("30 2 * * *", "cron", "2025-03-09T12:00Z", "2025-03-09T07:00Z"),
        ("30 2 * * *", "skip", "2025-03-09T12:00Z", "2025-03-08T07:30Z"),
        ("30 2 * * *", "literal", "2025-03-09T12:00Z", "2025-03-08T07:30Z"),
    ],
)
def test_prev_over_both_jumps(text: str, dst: str, at: str, expected: str) -> None:
    assert Cron(text, NEW_YORK, dst).prev(_at(at)) == _at(expected)


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(CronError, match="cron, skip, literal") as refusal:
        Cron("@daily", dst="twice")
    assert refusal.value.field == "dst"


def test_offsets_with_seconds_are_kept_to_the_second() -> None:
    """Liberia was 44 min 30 s behind UTC until 1972-01-07, when 00:00:00 became 00:44:30."""
    start = _at("1972-01-06T12:00Z")
    fixed = Cron("10,50 0 * * *", "Africa/Monrovia").between(start, _at("1972-01-08T12:00Z")).fires
    assert fixed == [
        _at("1972-01-07T00:44:30Z"),
        _at("1972-01-07T00:50Z"),
        _at("1972-01-08T00:10Z"),
        _at("1972-01-08T00:50Z"),
    ]
    hourly = Cron("30 * * * *", "Africa/Monrovia")
    assert hourly.between(_at("1972-01-06T23:00Z"), _at("1972-01-07T02:00Z")).fires == [
        _at("1972-01-06T23:14:30Z"),
        _at("1972-01-07T00:14:30Z"),
        _at("1972-01-07T01:30Z"),
    ]


# Bounds


def test_between_takes_the_end_leaves_the_start_and_says_if_it_cut() -> None:
    cron = Cron("0 * * * *")
    start, end = _at("2026-01-01T00:00Z"), _at("2026-01-01T03:00Z")
    hours = [start + timedelta(hours=hour) for hour in (1, 2, 3)]
    assert cron.between(start, end) == (hours, False)
    assert cron.between(start, end, limit=3) == (hours, False)
    assert cron.between(start, end, limit=2) == (hours[:2], True)
    assert cron.between(end, start) == ([], False)
    with pytest.raises(CronError) as refusal:
        cron.between(start, end, limit=0)
    assert refusal.value.field == "limit"


def test_the_sparsest_schedules_are_found_over_forty_years() -> None:
    assert Cron("0 0 29 2 *").next(_at("2096-03-01T00:00Z")) == _at("2104-02-29T00:00Z")
    mondays = Cron("0 0 * 2 MON#5")
    assert mondays.next(_at("2072-03-01T00:00Z")) == _at("2112-02-29T00:00Z")
    assert mondays.prev(_at("2112-02-28T00:00Z")) == _at("2072-02-29T00:00Z")


def test_a_day_that_never_comes_is_left_out_of_the_search() -> None:
    cron = Cron("0 0 31 2 MON")
    assert cron.next(_at("2026-02-24T00:00Z")) == _at("2027-02-01T00:00Z")
    assert cron.prev(_at("2026-02-01T00:00Z")) == _at("2025-02-24T00:00Z")


@pytest.mark.parametrize("dst", ["skip", "literal"])
def test_a_schedule_that_meets_nothing_but_gaps_is_given_up(dst: str) -> None:
    """02:30 on the last Sunday of March: the night of Berlin's jump, every year since 1981; in 1980 it was a week later."""
    cron = Cron("30 2 * 3 SUNL", "Europe/Berlin", dst)
    assert cron.next(BEFORE_JUMPS) is None
    assert cron.prev(BEFORE_JUMPS) == _at("1980-03-30T01:30Z")
    assert Cron("30 2 * 3 SUNL", "Europe/Berlin").next(BEFORE_JUMPS) == _at("2025-03-30T01:00Z")


@pytest.mark.parametrize("dst", DST_MODES)
@pytest.mark.parametrize("key", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", NEW_YORK])
def test_the_ends_of_the_calendar_give_none_and_no_error(key: str, dst: str) -> None:
    latest, earliest = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
    for text in ("* * * * *", "30 2 * * *", "0 0 29 2 *", "0 0 L * 5L"):
        cron = Cron(text, key, dst)
        assert cron.next(latest) is None
        assert cron.prev(earliest) is None
        first, last = cron.next(earliest), cron.prev(latest)
        assert first is not None
        assert first.year <= 4
        assert last is not None
        assert last.year >= 9996
        assert cron.next(last) is None
        assert cron.prev(first - timedelta(microseconds=1)) is None
        assert cron.warnings_at(latest) == cron.warnings_at(latest)


def test_the_ends_of_the_calendar_in_other_zones_are_no_error() -> None:
    east, west = ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Etc/GMT+12")
    assert Cron("@daily").prev(datetime.min.replace(tzinfo=east)) is None
    assert Cron("@daily").next(datetime.max.replace(tzinfo=west)) is None


# One parsed expression serves many schedules and threads


def test_walks_over_one_cached_expression_do_not_disturb_each_other() -> None:
    berlin, tokyo = Cron("0 9 1 * 1", "Europe/Berlin"), Cron("0 9 1 * 1", "Asia/Tokyo")
    start = _at("2026-01-01T00:00Z")
    alone = berlin.between(start, _at("2026-12-31T00:00Z")).fires
    moment, mixed = start, []
    while (fire := berlin.next(moment)) is not None and fire <= _at("2026-12-31T00:00Z"):
        assert tokyo.prev(start) == _at("2026-01-01T00:00Z")
        mixed.append(fire)
        moment = fire
    assert mixed == alone


def test_threads_share_a_schedule() -> None:
    cron = Cron("*/7 1-5 * * 1#1,5", NEW_YORK)
    starts = [datetime(2025, month, 1, tzinfo=UTC) for month in range(1, 13)]

    def walk(start: datetime) -> list[datetime]:
        return cron.between(start, start + timedelta(days=20), limit=60).fires

    alone = [walk(start) for start in starts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(walk, starts * 4)) == alone * 4


def test_a_walk_leaves_the_shared_expanders_as_they_were() -> None:
    """croniter objects keep their position: another thread's call would answer from it."""
    walls = Walls(parse("*/7 1-5 1,L * 1#1,5"))
    before = [copy.deepcopy(vars(stream)) for stream in walls._days._streams]
    assert len(before) == 4
    walls.after(datetime(2026, 5, 5, 12))  # noqa: DTZ001
    walls.up_to(datetime(2025, 5, 5, 12))  # noqa: DTZ001
    assert [vars(stream) for stream in walls._days._streams] == before


# Warnings


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("0 0 13 * 5", "EITHER"),
        ("*/7 * * * *", "minute: */7 starts again at 0"),
        ("*/45 * * * *", "minute: */45 starts again"),
        ("0 0-23/5 * * *", "hour: 0-23/5 starts again"),
        ("0 */24 * * *", "hour: */24 matches 0 only"),
        ("0 0 31 * *", "months without day 31 are skipped"),
        ("0 0 29 2 *", "months without day 29 are skipped"),
        ("0 0 28-30 * *", "months without day 29, 30 are skipped"),
    ],
)
def test_a_suspicious_expression_is_accepted_with_a_warning(text: str, part: str) -> None:
    assert any(part in warning for warning in Cron(text).warnings)


@pytest.mark.parametrize("text", ["*/15 * * * *", "0 */6 * * 1-5", "@monthly", "0 0 31 1,3 *", "0 0 L * *"])
def test_a_plain_expression_has_no_warning(text: str) -> None:
    assert Cron(text).warnings == ()


def test_warnings_name_the_coming_jumps_and_the_instants_used() -> None:
    assert Cron("30 2 * * *", NEW_YORK).warnings_at(BEFORE_JUMPS) == (
        "2025-03-09 02:30 America/New_York does not exist: "
        "what the gap skips runs once, at 2025-03-09 03:00-0400 (07:00Z)",
    )
    assert Cron("30 1 * * *", NEW_YORK).warnings_at(BEFORE_JUMPS) == (
        "2025-11-02 01:30 America/New_York comes twice: "
        "runs the first time only, at 2025-11-02 01:30-0400 (05:30Z)",
    )
    assert Cron("30 1 * * *", NEW_YORK, "literal").warnings_at(BEFORE_JUMPS) == (
        "2025-11-02 01:30 America/New_York comes twice: "
        "runs at 2025-11-02 01:30-0400 (05:30Z) and at 2025-11-02 01:30-0500 (06:30Z)",
    )
    (dropped,) = Cron("30 2 * * *", NEW_YORK, "skip").warnings_at(BEFORE_JUMPS)
    assert dropped.endswith("does not exist: not run")


def test_schedules_that_miss_the_jumps_or_follow_elapsed_time_are_not_warned_of() -> None:
    assert Cron("30 12 * * *", NEW_YORK).warnings_at(BEFORE_JUMPS) == ()
    assert Cron("30 2 * * 1", NEW_YORK).warnings_at(BEFORE_JUMPS) == ()
    assert Cron("30 * * * *", NEW_YORK).warnings_at(BEFORE_JUMPS) == ()
    assert Cron("30 2 * * *").warnings_at(BEFORE_JUMPS) == ()
    with pytest.raises(CronError) as refusal:
        Cron("@daily").warnings_at(datetime(2026, 1, 1))  # noqa: DTZ001
    assert refusal.value.field == "now"
