"""The process's estimate of the database's time, measured over Django's connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from jobs import clock
from jobs.clock import TRIES
from tests.factories import server_time

LATE = 60
"""Seconds."""


class Line:
    """The way to the database: the first so many replies arrive late, by a boot time that is moved by hand."""

    def __init__(self, late: int) -> None:
        self.late, self.asked, self._lag, self._boottime = late, 0, 0.0, clock.boottime

    def boottime(self) -> float:
        return self._boottime() + self._lag

    def __call__(self, execute: Callable[..., Any], statement: str, *given: Any) -> Any:
        self.asked += 1
        if self.asked > self.late:
            return execute(statement, *given)
        self._lag += LATE
        return execute(f"{statement} - interval '{LATE} s'", *given)


def measured(monkeypatch: pytest.MonkeyPatch, line: Line) -> Any:
    monkeypatch.setattr(clock, "_clocks", {})
    monkeypatch.setattr(clock, "boottime", line.boottime)
    with connections["default"].execute_wrapper(line):
        return clock.now()


def test_a_late_reply_is_asked_for_again(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says would be believed for half a minute."""
    line, before = Line(late=1), server_time(here)
    assert before <= measured(monkeypatch, line)
    assert line.asked == 2


def test_when_all_replies_are_late_the_last_tells_the_time(
    here: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, before = Line(late=99), server_time(here)
    assert measured(monkeypatch, line) < before
    assert line.asked == TRIES


def test_it_is_asked_for_once_in_a_while(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(late=0)
    measured(monkeypatch, line)
    asked = line.asked
    with connections["default"].execute_wrapper(line):
        assert clock.now() <= server_time(here)
    assert line.asked == asked
