"""PgBouncer in transaction mode in front of the storm's PostgreSQL."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

from jobs.errors import NotConfigured
from tests.storm.server import Server
from tests.waiting import wait_until

PORT = 6432
_CONFIG = """\
[databases]
* = host={sockets} port=5432 user=postgres
[pgbouncer]
unix_socket_dir = {sockets}
listen_port = {port}
auth_type = any
pool_mode = transaction
default_pool_size = 30
max_client_conn = 500
server_login_retry = 0.2
query_wait_timeout = 10
ignore_startup_parameters = extra_float_digits
logfile = {sockets}/pgbouncer.log
"""


class Pooler:
    def __init__(self, server: Server) -> None:
        program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin:/sbin:/bin")
        if program is None:
            raise NotConfigured("the storm needs Debian's pgbouncer: apt-get install pgbouncer")
        self._program, self._server = program, server
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        return self._server.sockets / f".s.PGSQL.{PORT}"

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        if self.alive:
            return
        file = self._server.sockets / "pgbouncer.ini"
        file.write_text(_CONFIG.format(sockets=self._server.sockets, port=PORT))
        file.chmod(0o644)
        for stale in (self.socket, self.socket.with_name(f"{self.socket.name}.lock")):
            stale.unlink(missing_ok=True)
        runs_as = ["-u", self._server.account] if self._server.account else []
        self._process = subprocess.Popen(
            [self._program, "-q", *runs_as, str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: self.socket.exists() or not self.alive, what="PgBouncer's socket")
        if not self.alive:
            raise NotConfigured(f"PgBouncer did not start: see {self._server.sockets}/pgbouncer.log")

    def send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(30)
