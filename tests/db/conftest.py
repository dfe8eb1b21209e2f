from __future__ import annotations

import pytest

from jobs import clock


@pytest.fixture
def steady_clock(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted statements do not include the look at the database's clock that is due every 30 seconds."""
    clock.now()
    monkeypatch.setattr(clock, "REFRESH", float("inf"))
