"""What the test's server works on now."""

from __future__ import annotations

from threading import Condition
from typing import Any

from django.core.signals import request_finished, request_started

LONG = 60.0


class Traffic:
    """Counts requests in all threads. A browser that closes leaves some behind, and they still read, and remember."""

    def __init__(self) -> None:
        self._open = 0
        self._changed = Condition()
        request_started.connect(self._begin)
        request_finished.connect(self._end)

    def wait(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._open == 0, LONG), (
                f"{self._open} requests are still open"
            )

    def close(self) -> None:
        request_started.disconnect(self._begin)
        request_finished.disconnect(self._end)

    def _begin(self, **_: Any) -> None:
        with self._changed:
            self._open += 1

    def _end(self, **_: Any) -> None:
        with self._changed:
            self._open -= 1
            self._changed.notify_all()
