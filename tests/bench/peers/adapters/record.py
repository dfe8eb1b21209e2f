"""The body of every job: one record at the end of one file, by one write. `node/record.mjs` is the same in Node."""

from __future__ import annotations

import os
import struct
import time
from functools import cache

VARIABLE = "PEERS_RECORDS"
"""The environment variable that names the file."""
RECORD = struct.Struct("<qdd")
"""The job's number, when it was due and when its body started, in seconds."""


def record(number: int, due: float, text: str) -> None:
    os.write(_file(), RECORD.pack(number, due, time.time()))


async def record_async(number: int, due: float, text: str) -> None:
    record(number, due, text)


@cache
def _file() -> int:
    return os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
