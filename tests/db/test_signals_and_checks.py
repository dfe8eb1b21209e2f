from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.checks import CheckMessage, run_checks
from django.db import DatabaseError
from pytest_django import Settings

from jobs import checks, partitions
from jobs.leases import settle
from jobs.registry import job_type, registry
from jobs.results import Completed, Held, Result, Settlement, Snoozed
from jobs.signals import attempts_settled, tell_settled
from tests.factories import claim, failed, process, schedule

Connection = psycopg.Connection[Any]


def held(here: Connection, **options: Any) -> Held:
    return claim(here, schedule(**options), process(here)).held


def lines(
    here: Connection, caplog: pytest.LogCaptureFixture, *results: tuple[Held, Result]
) -> list[tuple[Any, ...]]:
    """What is logged of a batch that is settled."""
    batch = [Settlement(mine, result, None) for mine, result in results]
    caplog.set_level(logging.DEBUG, "jobs.signals")
    attempts_settled.send(sender=None, settled=settle(here, batch))
    return [(record.levelname, record.getMessage(), record.__dict__["job"]) for record in caplog.records]


@pytest.mark.parametrize(
    ("result", "level", "word"),
    [
        (Completed(), "DEBUG", "completed"),
        (failed(), "WARNING", "retryable"),
        (failed(final=True), "ERROR", "failed"),
    ],
)
def test_an_attempt_is_one_line(
    here: Connection, caplog: pytest.LogCaptureFixture, result: Result, level: str, word: str
) -> None:
    mine = held(here)
    assert lines(here, caplog, (mine, result)) == [(level, word, str(mine.job_id))]
    record = caplog.records[0].__dict__
    assert (record["type"], record["attempt"]) == ("test.noop", 1)
    assert word == "completed" or record["error"] == "ValueError: no"


def test_a_fenced_result_is_a_line_of_its_own_and_a_snooze_is_none(
    here: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    mine, snoozing = held(here), held(here)
    settle(here, [Settlement(mine, failed(), None)])
    found = lines(here, caplog, (mine, Completed()), (snoozing, Snoozed(timedelta())))
    assert found == [("WARNING", "fenced", str(mine.job_id))]


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_bx_03_whatever_a_receiver_raises_ends_nothing(
    here: Connection, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    def fails(**kwargs: Any) -> None:
        raise error("receiver")

    attempts_settled.connect(fails)
    try:
        tell_settled(None, settle(here, [Settlement(held(here), Completed(), None)]))
    finally:
        attempts_settled.disconnect(fails)
    assert any(record.exc_info for record in caplog.records)


def ids(found: list[CheckMessage]) -> set[str]:
    return {message.id or "" for message in found if (message.id or "").startswith("jobs.")}


@pytest.mark.django_db
def test_a_sound_project_has_nothing_to_report() -> None:
    assert ids(run_checks(include_deployment_checks=True, databases=["default"])) == set()


def test_naive_times_are_an_error(settings: Settings) -> None:
    settings.USE_TZ = False
    assert ids(checks.check_settings(None)) == {"jobs.E001"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"no_such": 1},
        {"lease": 0},
        {"lease": "30"},
        {"lease": float("nan")},
        {"grace": float("inf")},
        {"idle_poll": 60},
        {"max_horizon": timedelta.max},
        {"timeout": 0},
        {"timeout": -1},
        {"schedule_lock_timeout": timedelta(seconds=-1)},
        {"max_attempts": 10_001},
        {"external_types": 5},
        {"external_types": [5]},
        {"retention": 900 * 86_400, "days_ahead": 100},
        ["lease"],
        None,
    ],
    ids=str,
)
def test_a_wrong_setting_is_an_error_that_names_it(settings: Settings, wrong: Any) -> None:
    settings.SCHEDULER = wrong
    (message,) = checks.check_settings(None)
    assert message.id == "jobs.E002"
    assert (next(iter(wrong)) if wrong else "dict") in message.msg


@pytest.fixture
def _unreadable() -> Iterator[None]:
    @job_type("test.unreadable")
    def unreadable(context: Any, payload: NoSuchType) -> None:  # type: ignore[name-defined]  # noqa: F821
        """Its annotation names nothing."""

    yield
    registry.remove("test.unreadable")


@pytest.mark.usefixtures("_unreadable")
def test_a_handler_whose_annotations_cannot_be_read_is_an_error_before_its_first_job() -> None:
    (message,) = checks.check_handlers(None)
    assert (message.id, "test.unreadable" in message.msg) == ("jobs.E003", True)


@dataclass
class Odd:
    numbers: set[int]


def test_a_payload_that_cannot_be_stored_is_an_error_before_its_first_job() -> None:
    @job_type("test.odd")
    def odd(context: Any, payload: Odd) -> None:
        """Of what JSON does not carry."""

    try:
        (message,) = checks.check_handlers(None)
    finally:
        registry.remove("test.odd")
    assert (message.id, "set[int]" in message.msg) == ("jobs.E003", True)


@pytest.mark.django_db
@pytest.mark.parametrize(("ready", "expected"), [(0, {"jobs.W010"}), (2, {"jobs.W010"}), (3, set())])
def test_few_days_ahead_are_a_warning(
    monkeypatch: pytest.MonkeyPatch, ready: int, expected: set[str]
) -> None:
    def few(*args: Any) -> Any:
        found = partitions.plan(*args)
        return type(found)(found.steps, found.days, ready)

    monkeypatch.setattr(checks, "plan", few)
    assert ids(checks.check_database(None, databases=["default"])) == expected


@pytest.mark.django_db
def test_days_that_cannot_be_read_are_a_warning_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> Any:
        raise DatabaseError("permission denied")

    monkeypatch.setattr(checks, "plan", broken)
    assert ids(checks.check_database(None, databases=["default"])) == {"jobs.W011"}


def test_without_a_database_nothing_is_asked_of_one() -> None:
    assert checks.check_database(None, databases=None) == []
