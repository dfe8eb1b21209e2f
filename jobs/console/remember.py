"""What a page read a moment ago is good for the next operator: fifty open consoles cost as much as one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from jobs.steady import time

P = ParamSpec("P")
T = TypeVar("T")

ENTRIES = 200
_kept: dict[Any, tuple[float, Any]] = {}
_lock = threading.Lock()


def remembered(seconds: float) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Call again only when the last answer for these arguments is older than `seconds`. Per process; what raises is
    not kept."""

    def wrap(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def ask(*args: P.args, **kwargs: P.kwargs) -> T:
            key = (function.__module__, function.__qualname__, args, tuple(sorted(kwargs.items())))
            now = time.monotonic()
            with _lock:
                found: tuple[float, Any] | None = _kept.get(key)
            if found is not None and now - found[0] < seconds:
                answer: T = found[1]
                return answer
            answer = function(*args, **kwargs)
            with _lock:
                if len(_kept) >= ENTRIES:
                    _kept.clear()
                _kept[key] = (now, answer)
            return answer

        return ask

    return wrap


def forget() -> None:
    with _lock:
        _kept.clear()
