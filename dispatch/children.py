"""A child process as its supervisor sees it: started, watched, told to drain, killed, and what it held given back."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg

from dispatch.slots import NEVER, Slots, Started
from jobs.clock import boottime
from jobs.conf import conf
from jobs.db import databases, is_pooled
from jobs.leases import Autopsy, admit, end, register, rescue_process
from jobs.leases.rescue import BATCH
from jobs.models.process import ProcessKind
from jobs.signals import tell_settled
from jobs.steady import time
from jobs.text import ErrorText

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

SLOTS = 4096
GONE_SECONDS = 10.0
"""How long to wait for a killed child's sessions to end, or a third of the lease; the living wait meanwhile."""
_OURS = "FROM pg_stat_activity WHERE application_name = %s AND usename = session_user AND datname = ANY(%s)"
_TERMINATE = f"SELECT pg_terminate_backend(pid, 500) {_OURS}"
_BUSY = f"SELECT pid {_OURS} AND state <> 'idle'"


@dataclass(frozen=True, kw_only=True)
class ChildSettings:
    queues: tuple[str, ...]
    types: tuple[str, ...]
    threads: int
    using: str
    listen: bool
    suspects: bool = False
    idle_exit: float = NEVER


@dataclass
class Child:
    process_id: int
    process: subprocess.Popen[str]
    slots: Slots
    settings: ChildSettings
    born: float = field(default_factory=boottime)
    killed_late: frozenset[UUID] = frozenset()
    """The jobs past their hard timeout for which it was killed."""
    draining_since: float | None = None

    @classmethod
    def start(cls, connection: Connection, settings: ChildSettings, parent_id: int) -> Child:
        """Register its process row, then start it: `spawn`, never fork, so that it inherits no connection or lock.
        OSError when the system has no room for it: nothing is left of it then."""
        process_id = register(
            connection,
            ProcessKind.WORKER,
            parent_id=parent_id,
            queues=settings.queues,
            types=settings.types,
        )
        with contextlib.ExitStack() as undo:
            undo.callback(end, connection, [process_id])
            slots = Slots.create(SLOTS, conf().lease.total_seconds())
            undo.callback(slots.close)
            slots.renewed(boottime())
            process = subprocess.Popen(
                # -P: nothing that lies in the working directory is imported.
                [sys.executable, "-P", "-m", "dispatch.child"],
                stdin=subprocess.PIPE,
                text=True,
                pass_fds=[slots.fd],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.curdir for path in sys.path)},
            )
            undo.callback(process.wait)
            undo.callback(process.kill)
            connection.execute("UPDATE jobs_process SET pid = %s WHERE id = %s", [process.pid, process_id])
            undo.pop_all()
        child = cls(process_id, process, slots, settings)
        child._tell(
            json.dumps(
                {
                    "supervisor": os.getpid(),
                    "python_path": os.environ.get("PYTHONPATH"),
                    "fd": slots.fd,
                    "slots": slots.count,
                    "process_id": process_id,
                    "queues": settings.queues,
                    "threads": settings.threads,
                    "using": settings.using,
                    "listen": settings.listen,
                    "suspects": settings.suspects,
                    "idle_exit": settings.idle_exit,
                }
            )
        )
        return child

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def ready(self) -> bool:
        """It has reached its loop."""
        return self.slots.beat_at > 0

    @property
    def application_name(self) -> str:
        return f"punctual worker {self.process_id}"

    def drain(self) -> None:
        if self.draining_since is None:
            self.draining_since = boottime()
            self.slots.stop_claiming()
            self._tell("drain")

    def kill(self) -> None:
        self.process.kill()  # does nothing to one that was reaped, whose number may be another's by now

    def check_deadlines(self) -> None:
        """A body past its hard timeout: stop claiming, let the others end for the grace period, then kill."""
        now = boottime()
        started = list(self.slots.started())
        late = [each for each in started if each.deadline < now]
        if not late:
            return
        if self.draining_since is None:
            logger.error(
                "hard timeout", extra={"worker": self.process_id, "jobs": [str(e.job_id) for e in late]}
            )
        self.drain()
        grace = conf().grace.total_seconds()
        if len(late) == len(started) or now - (self.draining_since or now) > grace:
            self.killed_late = frozenset(each.job_id for each in late)
            self.kill()

    def guarded(self) -> list[Started]:
        """Bodies that must not outlive the lease."""
        return [each for each in self.slots.started() if each.guarded]

    def bury(self, connection: Connection, *, crashed: bool) -> None:
        """After its death: end its sessions, so that nothing of it still writes, and give back what it held at once.
        `crashed`: what had started is to blame; else (killed by us, grace over) nobody is."""
        self.process.wait()
        _end_sessions(connection, self.application_name, pooled=is_pooled(self.settings.using))
        autopsy = self._autopsy(crashed)
        while True:
            rescued = rescue_process(connection, self.process_id, autopsy)
            tell_settled(Child, rescued)
            admit(connection, rescued.keys, self.settings.using)
            if len(rescued.batch) < BATCH:
                break
        end(connection, [self.process_id])
        self.slots.close()
        if self.process.stdin:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def _autopsy(self, crashed: bool) -> Autopsy:
        ended = frozenset(self.slots.ended())
        if self.killed_late:
            error = ErrorText("TimeoutError", "the process was killed at the hard timeout", "", "timeout")
            return Autopsy(error=error, guilty=self.killed_late, ended=ended, crashed=False)
        code = self.process.returncode
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        error = ErrorText(
            "WorkerCrashed", f"the process ended with {how} while this ran", "", "WorkerCrashed"
        )
        started = frozenset(each.job_id for each in self.slots.started()) if crashed else frozenset[UUID]()
        return Autopsy(error=error, guilty=started, ended=ended)

    def _tell(self, line: str) -> None:
        if self.process.stdin:
            with contextlib.suppress(OSError):  # it is gone already
                self.process.stdin.write(line + "\n")
                self.process.stdin.flush()


def _end_sessions(connection: Connection, name: str, *, pooled: bool) -> None:
    """A server session goes on with its statement after its client was killed: terminate and wait until it is gone.
    A pooler's sessions are not ours to end, they may be another's in the next moment: it ends by itself what a client has
    left in the middle, and is waited for."""
    until = time.monotonic() + min(GONE_SECONDS, conf().lease.total_seconds() / 3)
    ours = [name, databases(connection)]
    while time.monotonic() < until:
        with connection.transaction():
            # Who has assumed a role may not end the sessions of his own login.
            connection.execute("SET LOCAL ROLE NONE")
            if not connection.execute(_BUSY if pooled else _TERMINATE, ours).fetchall():
                return
        if pooled:
            time.sleep(0.05)
    logger.warning("sessions of a dead worker remain", extra={"application": name})
