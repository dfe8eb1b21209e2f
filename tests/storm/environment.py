"""The environment of the storm's processes: short times, so that every recovery can be watched."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from tests.storm.ledger import VARIABLE

LEASE, GRACE = 6.0, 3.0
"""Seconds."""
DISPATCHERS, WORKERS = 3, 4
THREADS = 4
DOOMED_ATTEMPTS = 3
"""Of a job that always fails."""
OLD, NEW = "tests.storm", "tests.storm,tests.storm.newer"
"""Two versions of the code."""

_SHORT = {
    "LEASE": LEASE,
    "GRACE": GRACE,
    "BACKOFF_BASE": 0.5,
    "BACKOFF_CAP": 2,
    "CRON_AHEAD": 10,
    "DAYS_AHEAD": 3,
    "RETENTION": 3 * 86400,
    "PROCESSES": 1,
    "THREADS": THREADS,
}


@dataclass(frozen=True)
class Addresses:
    """Where a process finds the database; `pooled`: PgBouncer's, and then `direct` beside it."""

    direct: str
    pooled: str | None = None

    @property
    def variables(self) -> dict[str, str]:
        if self.pooled is None:
            return {"DATABASE_URL": self.direct}
        return {"DATABASE_URL": self.pooled, "DIRECT_DATABASE_URL": self.direct}


def enter(folder: Path, addresses: Addresses) -> None:
    """Make it the environment of this process, the client, and so of those it starts."""
    for name in list(os.environ):
        if name.startswith("SCHEDULER_") or name == "DIRECT_DATABASE_URL":
            del os.environ[name]
    os.environ.update({f"SCHEDULER_{name}": str(value) for name, value in _SHORT.items()})
    os.environ.update(
        addresses.variables,
        SCHEDULER_APPS=NEW,
        DJANGO_SETTINGS_MODULE="scheduler_project.settings",
        SECRET_KEY=secrets.token_urlsafe(50),
        ALLOWED_HOSTS="localhost,127.0.0.1",
        SECURE_SSL_REDIRECT="0",
        DEBUG="0",
        LOG_LEVEL="INFO",
        WEB_CONCURRENCY="1",
        STATIC_ROOT=str(folder / "static"),
    )
    os.environ[VARIABLE] = str(folder / "ledger")
