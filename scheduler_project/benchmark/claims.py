"""How long the workers' claims take: each of their processes notes it in a file that all append to."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import Any

from jobs.leases import Claimer

VARIABLE = "BENCHMARK_CLAIMS"
"""The environment variable that asks for it and names the file."""
_LINE = struct.Struct("dd")


def note_claims(file: Path) -> None:
    """From now on this process notes its claims that take something."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    claim = Claimer.claim

    def noted(self: Claimer, *args: Any, **kwargs: Any) -> Any:
        begun = time.perf_counter()
        taken = claim(self, *args, **kwargs)
        if taken:
            os.write(descriptor, _LINE.pack(time.time(), time.perf_counter() - begun))
        return taken

    Claimer.claim = noted  # type: ignore[method-assign]


def read_claims(file: Path) -> list[tuple[float, float]]:
    """When each ended, by this host's clock, and how many seconds it took."""
    return [(at, seconds) for at, seconds in _LINE.iter_unpack(file.read_bytes())]
