"""The clock and the sleep of our own loops, as they were when the process began.

A handler that replaces those of the standard module, as mocks and frozen clocks do, replaces them for its whole process: a
loop that read them there would wait for ever, or never. So nobody here imports that module: they say
`from jobs.steady import time`.
"""

from __future__ import annotations

import time as _time  # noqa: TID251


class _Time:
    BOOT: int = getattr(_time, "CLOCK_BOOTTIME", _time.CLOCK_MONOTONIC)
    monotonic = staticmethod(_time.monotonic)
    sleep = staticmethod(_time.sleep)
    clock_gettime = staticmethod(_time.clock_gettime)


time = _Time()
