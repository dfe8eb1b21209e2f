"""Signals → events: the first SIGTERM or SIGINT drains, the second leaves at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Shutdown:
    """Install in the main thread of a command only: a library must never take a host's signals."""

    def __init__(self) -> None:
        self.drain = threading.Event()
        self.leave = threading.Event()

    def install(self) -> None:
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        (self.leave if self.drain.is_set() else self.drain).set()
