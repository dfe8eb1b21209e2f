"""The account the server runs as. PostgreSQL refuses root, so root runs it as an unprivileged account."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.errors import NotConfigured

OURS = "punctual"


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int

    def can_enter(self, folder: Path) -> bool:
        """Whether this account gets to `folder`, judged by permission bits: what an ACL adds is not counted."""
        return all(self._may_traverse(step) for step in [folder, *folder.parents] if step.exists())

    def _may_traverse(self, folder: Path) -> bool:
        found = folder.stat()
        shift = 6 if found.st_uid == self.uid else 3 if found.st_gid == self.gid else 0
        return bool(found.st_mode >> shift & 1)


NOBODY_YET = Account("", -1, -1)
"""Stands for the account that is made at the first start: it owns nothing."""


def find(data: Path) -> Account | None:
    """Whom the server of this data folder runs as; None: as whoever runs this."""
    if os.geteuid() != 0:
        return None
    if data.exists() and data.stat().st_uid != 0:
        return _owner(data)
    return _named("postgres") or _named(OURS) or NOBODY_YET


def find_or_make(data: Path) -> Account | None:
    account = find(data)
    return _make() if account is NOBODY_YET else account


def run(account: Account | None, args: Sequence[str | Path], *, keep: Sequence[int] = ()) -> tuple[int, str]:
    """Run one of the server's programs: its exit code and all it said. Descriptors in `keep` are handed on."""
    # A file, not a pipe: the server inherits the descriptor and would keep a pipe open for ever.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [str(arg) for arg in args],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env={name: value for name, value in os.environ.items() if not name.startswith("PG")},
            pass_fds=keep,
            start_new_session=True,
            check=False,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
        output.seek(0)
        return done.returncode, output.read().decode(errors="replace")


def _owner(path: Path) -> Account:
    found = path.stat()
    try:
        name = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        name = str(found.st_uid)
    return Account(name, found.st_uid, found.st_gid)


def _named(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, entry.pw_uid, entry.pw_gid)


def _make() -> Account:
    program = shutil.which("useradd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    said = "there is no useradd"
    if program:
        args = [program, "--system", "--no-create-home", "--shell", "/bin/false", OURS]
        done = subprocess.run(args, capture_output=True, text=True, check=False)
        said = done.stderr.strip()
    account = _named(OURS)  # also when another process made it at the same moment
    if account is None:
        raise NotConfigured(
            f"PostgreSQL does not run as root and no account could be made for it ({said}): add a user named "
            f"'{OURS}', work as an ordinary user, or set DATABASE_URL"
        )
    return account
