"""Wait for a fact, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(ask: Callable[[], T], *, timeout: float = 60.0, what: str = "") -> T:
    """Ask until the answer is truthy and return it; AssertionError with the last answer when it never is."""
    end = time.monotonic() + timeout
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout:g} s for {what or ask}; last answer: {answer!r}")
        time.sleep(0.02)
