"""A cron rule across the next changes of the clocks."""

from __future__ import annotations

from datetime import UTC, datetime

from jobs.console.cron_preview import AT_MOST, preview

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def asked(**given: str) -> dict[str, str]:
    return {"expression": "30 2 * * *", "timezone": "Europe/Berlin", "dst": "cron", "every": "", **given}


def test_both_changes_are_shown_with_the_fires_around_them() -> None:
    spring, autumn = preview(asked(), NOW)["changes"]
    assert spring.told == "Sunday 28 March 2027: Europe/Berlin goes forward from 02:00 to 03:00"
    assert [fire.local for fire in spring.fires] == ["Sun 2027-03-28 03:00 +0200 Europe/Berlin"]
    assert autumn.told == "Sunday 31 October 2027: Europe/Berlin goes back from 03:00 to 02:00"
    assert [fire.local for fire in autumn.fires] == ["Sun 2027-10-31 02:30 +0200 Europe/Berlin"]


def test_a_literal_rule_fires_twice_in_autumn_and_not_in_spring() -> None:
    spring, autumn = preview(asked(dst="literal"), NOW)["changes"]
    assert (len(spring.fires), len(autumn.fires)) == (0, 2)


def test_a_busy_rule_is_cut() -> None:
    spring, _ = preview(asked(expression="*/5 * * * *"), NOW)["changes"]
    assert (len(spring.fires), spring.is_cut) == (AT_MOST, True)


def test_a_zone_without_changes_has_none() -> None:
    found = preview(asked(timezone="Asia/Tokyo"), NOW)
    assert found["changes"] == []
    assert len(found["fires"]) == 10
    assert found["fires"][0].until == "in 5 h 30 min"


def test_what_is_wrong_is_said() -> None:
    assert "Mars" in preview(asked(timezone="Mars"), NOW)["problem"]
    assert preview({}, NOW)["problem"]
    assert "never" not in preview(asked(expression="", every="00:05:00"), NOW)["problem"]
