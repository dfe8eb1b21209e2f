"""The processes of the demo: `manage.py rundispatcher` and `runworker`, as an init system would run them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.db import connection

from jobs.conf import conf
from jobs.models import Process
from scheduler_project.children import Children
from tests.demo.environment import PROCESSES, ROOT

COMMANDS = {"dispatcher": "rundispatcher", "worker": "runworker"}

_READY = """
    SELECT count(*) FILTER (WHERE application_name = 'punctual dispatch') >= %(each)s
        AND count(DISTINCT application_name) FILTER (WHERE application_name LIKE 'punctual worker %%') >= %(children)s
    FROM pg_stat_activity WHERE datname = current_database()
"""


class Fleet(Children):
    """What they say goes to a file: the demo's own lines are to be read in peace."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self.log = log

    def start(self, name: str, module: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        with self.log.open("ab") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.demo.tied", str(os.getpid()), *module],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=ROOT,
                start_new_session=True,
            )

    def add(self, kind: str, number: int) -> None:
        self.start(f"{kind} {number}", [str(ROOT / "manage.py"), COMMANDS[kind]])

    def add_all(self) -> None:
        for number in range(1, PROCESSES + 1):
            for kind in COMMANDS:
                self.add(kind, number)

    def kill(self, kind: str, number: int) -> None:
        """SIGKILL: no handler, no clean-up, no goodbye. A worker's own children go with it."""
        process = self._running.pop(f"{kind} {number}")
        process.kill()
        process.wait()

    def worker_of(self, pid: int) -> int | None:
        """The number of the worker whose child has this process id."""
        parent = Process.objects.filter(
            pk__in=Process.objects.filter(pid=pid, ended_at=None).values("parent_id")
        ).first()
        for number in range(1, PROCESSES + 1):
            process = self._running.get(f"worker {number}")
            if process and parent and process.pid == parent.pid:
                return number
        return None

    def are_ready(self) -> bool:
        """Whether all of them have reached their loops."""
        with connection.cursor() as cursor:
            cursor.execute(_READY, {"each": PROCESSES, "children": PROCESSES * conf().processes})
            return bool(cursor.fetchone()[0])
