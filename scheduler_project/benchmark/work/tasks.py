"""The handlers: they do nothing but note that they ran, or sleep and note from when to when."""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path
from typing import Any

from jobs.context import Context
from jobs.registry import job_type
from scheduler_project.benchmark.ledger import VARIABLE, Ledger
from scheduler_project.benchmark.runs import Runs

NOOP = "benchmark.noop"
SLEEP = "benchmark.sleep"


@cache
def ledger() -> Ledger:
    return Ledger(Path(os.environ[VARIABLE]))


@cache
def runs() -> Runs:
    return Runs(Path(os.environ[VARIABLE]).with_name("runs"))


@job_type(NOOP)
def noop(context: Context, number: int, **rest: Any) -> None:
    ledger().note(number)


@job_type(SLEEP, queue=NOOP)
def sleep(context: Context, number: int, seconds: float, **rest: Any) -> None:
    begun = time.monotonic()
    ledger().note(number)
    time.sleep(seconds)
    runs().note(number, begun, time.monotonic())
