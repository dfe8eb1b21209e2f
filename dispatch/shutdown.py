"""Signals → events: the first SIGTERM or SIGINT drains, the second leaves at once. A terminal that is closed drains."""

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
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
            signal.signal(
                signal.SIGHUP, lambda number, frame: self.drain.set()
            )  # kernel and shell may both send it

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        (self.leave if self.drain.is_set() else self.drain).set()
