"""Where a server keeps its data, its socket and its locks, known without starting or asking anything."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from jobs.errors import NotConfigured
from scheduler_project.embedded import account

PORT = 5432  # only part of the socket's name: the server has no TCP


@dataclass(frozen=True)
class Place:
    name: str
    data: Path
    sockets: Path
    spare: Path
    """A folder of our own for what the server's account cannot reach where it is."""

    @property
    def uri(self) -> str:
        # In the query: libraries that read addresses disagree about a percent-encoded path as host.
        return f"postgresql://postgres@/postgres?host={quote(str(self.sockets), safe='')}&port={PORT}"

    @property
    def is_made(self) -> bool:
        return (self.data / "PG_VERSION").exists()

    @property
    def pid_file(self) -> Path:
        return self.data / "postmaster.pid"

    @property
    def socket_files(self) -> tuple[Path, Path]:
        socket = self.sockets / f".s.PGSQL.{PORT}"
        return socket, socket.with_name(f"{socket.name}.lock")

    def beside(self, suffix: str) -> Path:
        return self.data.with_name(self.data.name + suffix)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """One process at a time starts or stops this server."""
        try:
            if self.data.parent == self.spare:
                own_folder(self.spare, mode=0o711, owner=None)
            else:
                make_folder(self.data.parent)
            file = self.beside(".lock").open("a")
        except OSError as error:
            raise NotConfigured(
                f"{error.filename}: {error.strerror}; set DATABASE_URL to use a server elsewhere"
            ) from error
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def locate(data: Path) -> Place:
    wanted = data.resolve()
    name = f"punctual-{hashlib.sha256(os.fsencode(wanted)).hexdigest()[:12]}"
    spare = _first_writable("/var/tmp") / name  # noqa: S108 (its owner is checked)
    runs_as = account.find(wanted)
    reachable = runs_as is None or runs_as.can_enter(wanted.parent)
    return Place(
        name=name,
        data=wanted if reachable else spare / "data",
        # Short (a socket's path has some 100 bytes) and the same for every process, whatever its TMPDIR.
        sockets=_first_writable("/tmp") / name,  # noqa: S108 (its owner is checked)
        spare=spare,
    )


def make_folder(folder: Path) -> None:
    """A folder that the server's account can pass through, whatever our umask; one that exists stays as it is."""
    if not folder.exists():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o711)


def own_folder(folder: Path, *, mode: int, owner: account.Account | None) -> None:
    """Make `folder` or take it over if it is ours; anybody may have made one of that name before us."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    ours = {os.geteuid()} | ({owner.uid} if owner else set())
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in ours:
        raise NotConfigured(
            f"{folder} belongs to somebody else (uid {found.st_uid}): remove it or set DATABASE_URL"
        )
    folder.chmod(mode)
    if owner:
        os.chown(folder, owner.uid, owner.gid, follow_symlinks=False)


def _first_writable(usual: str) -> Path:
    folder = Path(usual)
    return folder if os.access(folder, os.W_OK | os.X_OK) else Path(tempfile.gettempdir()).resolve()
