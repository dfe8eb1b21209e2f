"""Durable operations: one verb on all jobs that a search finds, with preview, reason, pause, stop and undo."""

from __future__ import annotations

from jobs.operations.control import approve, pace, pause, resume, stop, undo
from jobs.operations.preview import Preview, preview
from jobs.operations.run import run_chunk
from jobs.operations.start import OperationRefused, submit

__all__ = [
    "OperationRefused", "Preview", "approve", "pace", "pause", "preview", "resume", "run_chunk", "stop", "submit", "undo",
]  # fmt: skip
