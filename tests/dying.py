"""Processes that are killed in the middle of a call: each is forked from one that has done nothing but set up Django,
so that a hundred of them are quick and none inherits a connection or a thread."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.commands import ROOT


class Mortals:
    def __init__(self, process: subprocess.Popen[bytes], epitaph: Path) -> None:
        self._process, self._epitaph = process, epitaph

    def strike(self, call: Callable[[], Any], number: int, *, sent: bool) -> str | None:
        """Kill a process that makes this call at a round trip (see `killing.die_at`); the trip's name, None when the
        call has ended before."""
        assert self._process.stdin
        assert self._process.stdout
        self._epitaph.unlink(missing_ok=True)
        pickle.dump((call, number, self._epitaph, sent), self._process.stdin)
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        if not self._epitaph.exists():
            assert status == 0
            return None
        assert status == -signal.SIGKILL
        return self._epitaph.read_text()


@contextmanager
def mortals(env: Mapping[str, str], folder: Path) -> Iterator[Mortals]:
    command = [sys.executable, "-m", "tests.dying"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=dict(env), stdin=pipe, stdout=pipe, start_new_session=True
    ) as process:
        try:
            yield Mortals(process, folder / "epitaph")
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def main() -> None:
    import django

    django.setup()
    from jobs import clock
    from tests.killing import die_at

    clock.PROMPT = float("inf")  # the round trips of a call are the same each time

    while True:
        call, number, epitaph, sent = pickle.load(sys.stdin.buffer)
        if not (child := os.fork()):
            die_at(number, epitaph, sent=sent)
            call()
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
