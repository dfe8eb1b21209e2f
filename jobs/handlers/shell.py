"""`shell.run`: run a command line that the settings allow, as cron would: with little environment, in a shell."""

from __future__ import annotations

import getpass
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from jobs.conf import conf
from jobs.errors import Fail, SchedulerError
from jobs.handlers.command import Tail
from jobs.text import storable

ANY = "*"
"""In the allow-list: every command line. Whoever may write definitions then runs what they like."""
POLL_SECONDS = 0.2
CHUNK = 65536


class ShellFailed(SchedulerError):
    """The command line ended with another status than 0; its output is in the notes."""


def run(
    command: str,
    *,
    stdin: str = "",
    environment: Mapping[str, str] | None = None,
    heartbeat: Callable[[], None],
) -> dict[str, Any]:
    """Run `command` and return {"status": 0, "output": the tail of its stdout and stderr}.

    It gets HOME, LOGNAME, PATH, SHELL and what `environment` says, nothing of the worker's own: that holds passwords.
    `heartbeat` is called while it runs; when that raises, the command and its children are killed. Fail when the
    settings do not allow the command, ShellFailed when it ends with a status other than 0.
    """
    if command not in (allowed := conf().shell_commands) and ANY not in allowed:
        raise Fail(
            f"the command line {command[:100]!r} is not allowed: name it in SCHEDULER['shell_commands'] to let jobs run it"
        )
    values = {**_environment(), **(environment or {})}
    limit = conf().result_bytes // 8  # JSON writes a control character in six bytes
    output = Tail(limit)
    with tempfile.TemporaryFile() as given:
        given.write(stdin.encode())
        given.seek(0)
        status = _run(command, values, given, output, heartbeat)
    if status != 0:
        ended = f"status {status}" if status > 0 else f"signal {signal.Signals(-status).name}"
        error = ShellFailed(f"the command ended with {ended}: {command[:200]}")
        if output.written:
            error.add_note(f"Output of the command:\n{storable(output.text(), conf().error_bytes // 8)}")
        raise error
    return {"status": status, "output": storable(output.text(), limit)}


def _run(
    command: str, values: dict[str, str], given: IO[bytes], output: Tail, heartbeat: Callable[[], None]
) -> int:
    try:
        process = subprocess.Popen(
            [values["SHELL"], "-c", command],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=values["HOME"],
            env=values,
            start_new_session=True,
        )
    except OSError as error:
        raise Fail(
            f"the shell {values['SHELL']!r} could not be started in {values['HOME']!r}: {error}"
        ) from error
    with process, selectors.DefaultSelector() as selector:
        assert process.stdout is not None  # noqa: S101  # for the type checker
        selector.register(process.stdout, selectors.EVENT_READ)
        try:
            while _collect(process, selector, output):
                heartbeat()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.wait()


def _collect(process: subprocess.Popen[bytes], selector: selectors.BaseSelector, output: Tail) -> bool:
    """Wait a moment for output. False when the command has ended, even if a child of its still holds the pipe."""
    assert process.stdout is not None  # noqa: S101  # for the type checker
    if selector.select(POLL_SECONDS):
        data = os.read(process.stdout.fileno(), CHUNK)
        output.write(data.decode("utf-8", "replace"))
        return bool(data)
    return process.poll() is None


def _environment() -> dict[str, str]:
    home = str(Path.home())
    return {
        "HOME": home if Path(home).is_dir() else "/",
        "LOGNAME": getpass.getuser(),
        "PATH": "/usr/bin:/bin",
        "SHELL": "/bin/sh",
    }
