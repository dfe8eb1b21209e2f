"""The data folder: made in one step, never removed."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from jobs.errors import NotConfigured
from scheduler_project.embedded.account import Account, run
from scheduler_project.embedded.place import Place, own_folder

OPTIONS = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-instructions"]


def make(place: Place, initdb: Path, account: Account | None, *, durable: bool) -> None:
    """Initialise a new folder, beside its place until it is whole: a killed initdb must not pass for a database."""
    if place.is_made:
        _give(place.data, account)
        return
    if place.data.exists() and any(place.data.iterdir()):
        raise NotConfigured(f"{place.data} is neither empty nor a PostgreSQL data folder: move it away")
    draft = place.beside(".new")
    shutil.rmtree(draft, ignore_errors=True)
    own_folder(draft, mode=0o700, owner=account)
    locale = "C.UTF-8" if sys.platform == "linux" else "C"
    args: list[str | Path] = [
        initdb,
        "-D",
        draft,
        *OPTIONS,
        f"--locale={locale}",
        *(() if durable else ("--no-sync",)),
    ]
    code, said = run(account, args)
    if code:
        raise NotConfigured(f"PostgreSQL could not make {place.data}: {_reason(said)}")
    draft.rename(place.data)


def check_owner(place: Place) -> None:
    """PostgreSQL runs only as the owner of its data."""
    if place.data.exists() and os.geteuid() not in (0, owner := place.data.stat().st_uid):
        raise NotConfigured(
            f"{place.data} belongs to uid {owner}: work as that user or root, or set DATABASE_URL"
        )


def check_version(place: Place, major: int) -> None:
    found = (place.data / "PG_VERSION").read_text().strip()
    if found != str(major):
        raise NotConfigured(
            f"{place.data} was made by PostgreSQL {found} and these programs are {major}: "
            f"move the folder away (nothing was changed in it) or set DATABASE_URL"
        )


def _give(data: Path, account: Account | None) -> None:
    """A folder that root copied belongs to root; the server takes only its own."""
    if account is None or data.stat().st_uid != 0:
        return
    for folder, _, files in os.walk(data):
        for path in [Path(folder), *(Path(folder, name) for name in files)]:
            os.chown(path, account.uid, account.gid, follow_symlinks=False)
    data.chmod(0o700)


def _reason(said: str) -> str:
    lines = said.strip().splitlines()
    return next(
        (line for line in lines if "error:" in line or "FATAL" in line), lines[-1] if lines else "no word"
    )
