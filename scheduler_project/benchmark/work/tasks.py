"""The handlers: they do nothing but note that they ran."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from jobs.context import Context
from jobs.registry import job_type
from scheduler_project.benchmark.ledger import VARIABLE, Ledger

NOOP = "benchmark.noop"


@cache
def ledger() -> Ledger:
    return Ledger(Path(os.environ[VARIABLE]))


@job_type(NOOP)
def noop(context: Context, number: int, **rest: Any) -> None:
    ledger().note(number)
