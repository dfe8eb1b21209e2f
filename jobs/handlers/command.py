"""`django.command`: run a management command that the settings allow."""

from __future__ import annotations

import io
from collections import deque
from typing import Any

from django.core.management import CommandError, call_command

from jobs.conf import conf
from jobs.errors import Fail
from jobs.text import storable

CAPTURED = ("stdout", "stderr")


class Tail(io.TextIOBase):
    """A text file that remembers at least the last `limit` characters written to it, and not much more."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size, self._chunks = limit, 0, deque[str]()
        self.written = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written += len(text)
        self._chunks.append(text[-self._limit :])
        self._size += len(self._chunks[-1])
        while self._size - len(self._chunks[0]) >= self._limit:
            self._size -= len(self._chunks.popleft())
        return len(text)

    def text(self) -> str:
        kept = "".join(self._chunks)[-self._limit :]
        missing = self.written - len(kept)
        return (f"… {missing:,} characters of output before this were not kept …\n" if missing else "") + kept


def run(name: str, args: list[Any] | None = None, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run command `name` and return {"output": the tail of its stdout and stderr}.

    What the command writes to `self.stdout` and `self.stderr` is kept; print() goes to the worker's own output, which
    threads share. Fail when the settings do not allow the command; CommandError (a failed attempt, with the output in
    its notes) when the command raises it or exits with a status other than 0.
    """
    if name not in conf().django_commands:
        raise Fail(
            f"the command {name!r} is not allowed: name it in SCHEDULER['django_commands'] to let jobs run it"
        )
    if taken := [option for option in CAPTURED if option in (options or {})]:
        raise Fail(
            f"the option {taken[0]!r} cannot be set: the output of the command is kept in the job's result"
        )
    limit = conf().result_bytes // 8  # JSON writes a control character in six bytes
    output = Tail(limit)
    try:
        call_command(name, *(args or []), stdout=output, stderr=output, **(options or {}))
    except SystemExit as error:
        if error.code not in (None, 0):
            raise _failed(CommandError(f"{name} exited with status {error.code}"), output) from error
    except Exception as error:
        _failed(error, output)
        raise
    return {"output": storable(output.text(), limit)}


def _failed(error: Exception, output: Tail) -> Exception:
    if text := output.text():
        error.add_note(f"Output of the command:\n{storable(text, conf().error_bytes // 8)}")
    return error
