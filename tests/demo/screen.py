"""What the demo says: a line per chapter, and one line below that is kept up to date."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from io import TextIOWrapper

INDENT = 22
EVERY = 3.0
"""Seconds between two lines of progress where a line cannot be overwritten."""


class Screen:
    def __init__(self) -> None:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal that knows no blocks
        self.begun = time.monotonic()
        self._is_live, self._shown = sys.stdout.isatty(), False
        self._said = -EVERY

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.begun

    def chapter(self, name: str, text: str) -> None:
        """Something happens now, and why that matters."""
        first, *others = textwrap.wrap(text, self._width() - INDENT)
        self._write(f"{self.elapsed:5.1f} s  {name:<{INDENT - 10}} {first}\n")
        for line in others:
            self._write(" " * INDENT + f"{line}\n")

    def line(self, text: str = "") -> None:
        self._write(f"{text}\n")

    def progress(self, text: str) -> None:
        line = f"{self.elapsed:5.1f} s  {text}"
        if self._is_live:
            self._write(line[: self._width()])
            self._shown = True
        elif self.elapsed - self._said >= EVERY:
            self._said = self.elapsed
            self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        sys.stdout.write(("\r\x1b[2K" if self._shown else "") + text)
        sys.stdout.flush()
        self._shown = False

    def _width(self) -> int:
        return min(shutil.get_terminal_size().columns - 1, 100)
