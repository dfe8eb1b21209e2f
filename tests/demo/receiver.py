"""The other end of the webhooks: a small HTTP server that is overloaded now and then."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ONE_IN = 20
"""Of so many jobs one is refused when it comes first."""


class Receiver(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.calls, self.taken = Counter[str](), Counter[str]()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hooks"

    def take(self, key: str) -> bool:
        """False: too busy, come again."""
        with self._lock:
            self.calls[key] += 1
            if self.calls[key] == 1 and len(self.calls) % ONE_IN == 0:
                return False
            self.taken[key] += 1
            return True


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204 if self.server.take(self.headers["Idempotency-Key"]) else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class calls it so)
        """Nothing: the demo has its own output."""


@contextmanager
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, name="receiver", daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
