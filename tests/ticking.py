"""Passes of a ticker, for processes that are killed in the middle of one."""

from __future__ import annotations

from datetime import datetime

from dispatch.ticker import Ticker
from tests.factories import own_connection


def tick_at(now: datetime) -> None:
    """One pass on a connection of its own."""
    with own_connection() as connection:
        Ticker().run_once(connection, now)
