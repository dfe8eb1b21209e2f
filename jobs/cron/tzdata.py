"""Which release of the time zone data this process reads."""

from __future__ import annotations

import zoneinfo
from functools import cache
from importlib import import_module
from pathlib import Path

_FILES = ("tzdata.zi", "+VERSION", "version")
UNKNOWN = ""


@cache
def version() -> str:
    """Such as "2026a": later releases sort later. Empty when the system's files do not say."""
    for folder in map(Path, zoneinfo.TZPATH):
        if (folder / "UTC").exists() or (folder / "Etc" / "UTC").exists():
            return next(filter(None, (_read(folder / name) for name in _FILES)), UNKNOWN)
    try:
        return str(import_module("tzdata").IANA_VERSION)
    except ImportError:
        return UNKNOWN


def _read(path: Path) -> str:
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            words = file.readline().split()
    except OSError:
        return ""
    return words[-1][:20] if words else ""
