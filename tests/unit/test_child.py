"""What a worker's process makes of what its supervisor has given it."""

from __future__ import annotations

import os
from typing import Any

import pytest
from django.db import connections
from django.db.utils import ConnectionHandler

from dispatch import child, leaks


@pytest.fixture
def databases(monkeypatch: pytest.MonkeyPatch) -> ConnectionHandler:
    """One of an engine that does not say which database it is for, and one of another kind."""
    handler = ConnectionHandler(
        {
            "default": {**connections["default"].settings_dict, "ENGINE": "tests.engine"},
            "other": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
        }
    )
    monkeypatch.setattr(child, "connections", handler)
    monkeypatch.setattr(leaks, "connections", handler)
    return handler


def test_sessions_of_any_engine_for_postgresql_bear_the_workers_name(databases: Any) -> None:
    """As of PostGIS: else nobody ends what a dead worker's bodies have left running at the server."""
    child._name_sessions("punctual worker 7")
    assert databases["default"].get_connection_params()["application_name"] == "punctual worker 7"
    assert "application_name" not in databases["other"].settings_dict["OPTIONS"]
    assert leaks.Leaks(3).most == leaks.OWN + 3


@pytest.mark.parametrize("before", [None, "/srv/lib"])
def test_fk_01_what_bodies_start_finds_the_path_of_the_supervisor(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another Python would find the library of ours."""
    monkeypatch.setenv("PYTHONPATH", "/usr/lib/python3.99")
    child._restore_path(before)
    assert os.environ.get("PYTHONPATH") == before
