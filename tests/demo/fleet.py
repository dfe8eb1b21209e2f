"""The processes of the demo: `manage.py rundispatcher` and `runworker`, as an init system would run them."""

from __future__ import annotations

from django.db import connection

from jobs.conf import conf
from jobs.models import Process
from scheduler_project.children import ROOT, TiedChildren
from tests.demo.environment import PROCESSES

COMMANDS = {"dispatcher": "rundispatcher", "worker": "runworker"}

_READY = """
    SELECT count(*) FILTER (WHERE application_name = 'punctual dispatch') >= %(each)s
        AND count(DISTINCT application_name) FILTER (WHERE application_name LIKE 'punctual worker %%') >= %(children)s
    FROM pg_stat_activity WHERE datname = current_database()
"""


class Fleet(TiedChildren):
    """The demo's own lines are to be read in peace: what these say goes to a file."""

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
