"""What the harness knows of a peer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from jobs.errors import SchedulerError


class PeerFailed(SchedulerError):
    """A peer could not be installed, or did not do what it should."""


class Home(Enum):
    """Where its programs come from."""

    CHECKOUT = "this checkout"
    PYTHON = "a virtual environment"
    NODE = "an npm project"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Worker processes, and the options of each: the arguments of the adapter's `work`."""

    processes: int
    options: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Peer:
    name: str
    """On the command line, and of the adapter."""
    title: str
    """As its authors write it; of the package that is pinned."""
    home: Home
    burst: Setting
    precision: Setting
    unfinished: str
    """SQL: is there a job that has not ended?"""
    share: float = 1.0
    """Of the jobs that the user asked for: the slow ones get fewer, which does them no harm."""
    pace: int
    """Jobs a second that it schedules in bulk even on a slow machine."""
    analyze: bool = False
    """Between scheduling and T: without fresh statistics its plans may be bad ones."""
    on_redis: bool = False
    """Instead of PostgreSQL."""

    def count(self, jobs: int) -> int:
        return max(1, round(jobs * self.share))
