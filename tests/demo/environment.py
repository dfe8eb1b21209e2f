"""The environment of the demo's processes: a scheduler of its own, with short times so that recovery can be watched."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from urllib.parse import quote

from scheduler_project.scratch import with_database

DATABASES = "punctual_demo_"
"""Prefix of the names of the demos' databases."""

LEASE = 5
"""Seconds after which the jobs of a process that vanished are taken over (default: 30)."""
PROCESSES = 2
"""Of each kind."""

LEDGER = "ledger"

_SHORT = {
    "LEASE": LEASE,
    "GRACE": 3,
    "BACKOFF_BASE": 1,
    "BACKOFF_CAP": 3,
    "DAYS_AHEAD": 3,
}
_HANDLERS = {
    "APPS": "tests.demo",
    "HTTP_PRIVATE_HOSTS": "127.0.0.0/8",
    "DJANGO_COMMANDS": "clearsessions",
}


def enter(server: str, database: str, folder: Path) -> None:
    """Make it the environment of this process, and so of those it starts. No other setting of the scheduler stays."""
    for name in list(os.environ):
        if name.startswith("SCHEDULER_") or name == "DIRECT_DATABASE_URL":
            del os.environ[name]
    os.environ.update({f"SCHEDULER_{name}": str(value) for name, value in {**_SHORT, **_HANDLERS}.items()})
    os.environ.update(
        DJANGO_SETTINGS_MODULE="scheduler_project.settings",
        DATABASE_URL=with_database(server, database),
        SECRET_KEY=secrets.token_urlsafe(50),
        ALLOWED_HOSTS="localhost",
        SECURE_SSL_REDIRECT="0",
        DEBUG="0",
        LOG_LEVEL="INFO",
        EMAIL_URL=f"filemail:///{quote(str(folder / 'mail'))}",
        DEFAULT_FROM_EMAIL="reminders@demo.example",
        DEMO_LEDGER=str(folder / LEDGER),
    )
