"""`shell.run`: nothing unless allowed, little environment, output kept, and an end when it is asked to stop."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from jobs.errors import Cancelled, Fail
from jobs.handlers import shell
from jobs.handlers.shell import ShellFailed
from tests.commands import is_alive
from tests.waiting import wait_until


def run(command: str, **options: Any) -> dict[str, Any]:
    return shell.run(command, **{"heartbeat": lambda: None} | options)


@pytest.fixture
def any_command(settings: Settings) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "shell_commands": ["*"]}


def test_it_is_off_by_default() -> None:
    with pytest.raises(Fail, match=r"SCHEDULER\['shell_commands'\]"):
        run("true")


def test_a_command_line_is_allowed_as_a_whole(settings: Settings) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "shell_commands": ["echo one"]}
    assert run("echo one") == {"status": 0, "output": "one\n"}
    for other in ("echo one; echo two", "echo", "echo one "):
        with pytest.raises(Fail):
            run(other)


@pytest.mark.usefixtures("any_command")
class TestAllowed:
    def test_stdout_and_stderr_are_kept_together(self) -> None:
        assert run("echo out; echo err >&2")["output"] == "out\nerr\n"

    def test_it_reads_what_it_is_given(self) -> None:
        assert run("cat", stdin="Dear admin,\n50%\n")["output"] == "Dear admin,\n50%\n"

    def test_it_sees_nothing_of_the_workers_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DATABASE_URL", "postgresql://u:hunter2@h/d")
        lines = run("env", environment={"GREETING": "hello"})["output"].splitlines()
        names = {line.partition("=")[0] for line in lines}
        assert {"HOME", "LOGNAME", "PATH", "SHELL", "GREETING"} <= names
        assert names <= {"HOME", "LOGNAME", "PATH", "SHELL", "GREETING", "PWD", "SHLVL", "_", "OLDPWD"}

    def test_another_shell_and_home_can_be_said(self, tmp_path: Path) -> None:
        output = run("echo $0; pwd", environment={"SHELL": "/bin/bash", "HOME": str(tmp_path)})["output"]
        assert output == f"/bin/bash\n{tmp_path}\n"
        with pytest.raises(Fail, match="could not be started"):
            run("true", environment={"HOME": "/nowhere"})

    def test_a_status_fails_the_attempt_with_the_output(self) -> None:
        with pytest.raises(ShellFailed, match="status 3") as failure:
            run("echo why; exit 3")
        assert "why" in failure.value.__notes__[0]
        with pytest.raises(ShellFailed, match="SIGTERM"):
            run("kill -TERM $$")

    def test_much_output_is_kept_from_its_end(self) -> None:
        output = run("seq 1 200000")["output"]
        assert output.endswith("200000\n")
        assert "were not kept" in output.splitlines()[0]
        assert len(output) < 100_000

    def test_when_it_shall_stop_it_and_its_children_are_killed(self, tmp_path: Path) -> None:
        pid_file = tmp_path / "pid"

        def heartbeat() -> None:
            if pid_file.exists() and pid_file.read_text().strip():
                raise Cancelled("stop")

        with pytest.raises(Cancelled):
            run(f"sleep 600 & echo $! > {pid_file}; wait", heartbeat=heartbeat)
        child = int(pid_file.read_text())
        wait_until(lambda: not is_alive(child), what="the end of the child")

    def test_a_child_that_keeps_the_pipe_does_not_keep_the_job(self, tmp_path: Path) -> None:
        pid_file = tmp_path / "pid"
        assert run(f"sleep 600 & echo $! > {pid_file}; echo done")["output"] == "done\n"
        os.kill(int(pid_file.read_text()), signal.SIGKILL)
