"""Wall clocks that can be set: one for each process that has such a clock (`clock.c`)."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

from jobs.errors import NotConfigured


class Clock:
    def __init__(self, file: Path) -> None:
        self._file = file
        file.write_bytes(struct.pack("q", 0))

    def set(self, wrong_by: int) -> None:
        """Seconds by which it is ahead; in place, since the process has the file mapped."""
        descriptor = os.open(self._file, os.O_WRONLY)
        try:
            os.pwrite(descriptor, struct.pack("q", wrong_by), 0)
        finally:
            os.close(descriptor)

    def variables(self, library: Path) -> dict[str, str]:
        """What the environment of its process needs."""
        return {"LD_PRELOAD": str(library), "STORM_CLOCK": str(self._file)}


def build(folder: Path) -> Path:
    """The library, compiled. NotConfigured without a C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise NotConfigured(
            "the storm needs a C compiler for its wrong clocks: apt-get install gcc libc6-dev"
        )
    library = folder / "clock.so"
    source = Path(__file__).with_name("clock.c")
    done = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotConfigured(f"{source} does not compile: {done.stderr.strip()}")
    return library
