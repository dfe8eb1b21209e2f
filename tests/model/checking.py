"""Run Spin and its verifier on the model: translate, compile, search every reachable state."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from jobs.errors import NotConfigured

MODEL = Path(__file__).with_name("scheduler.pml")
MEMORY = 2048
"""Megabytes that a search may take."""
DEPTH = 100_000


@dataclass(frozen=True)
class Search:
    name: str
    defines: tuple[str, ...] = ()
    liveness: bool = False
    broken: bool = False
    """It has a guard less: its first error is soon found, and to compile it well is not worth the time."""

    @property
    def options(self) -> list[str]:
        return [f"-D{each}" for each in (*self.defines, *(["LIVENESS"] if self.liveness else []))]


@dataclass(frozen=True)
class Found:
    errors: int
    states: int
    complete: bool
    """Every reachable state was visited."""
    said: str

    @property
    def wrong(self) -> str:
        """What the first error violates."""
        found = re.search(r"pan:\d+: (.*?)(?: \(at depth|$)", self.said, re.MULTILINE)
        return found[1] if found else ""


PROPER = (
    Search("deaths, lapses, lost replies, crashes of the server", ("RETRIES=0",)),
    Search("deaths, lapses, lost replies, an operator's retry", ("SERVER_CRASHES=0", "RETURNS=0")),
    Search("two jobs", ("JOBS=2", "SERVER_CRASHES=0", "RETURNS=0", "RETRIES=0", "LOST_REPLIES=0")),
    Search("every job ends, under fairness", ("RETRIES=0", "CANCELS=0"), liveness=True),
)
BROKEN = (
    Search("settle without the token", ("NO_FENCE",), broken=True),
    Search("rescue without looking at the lease", ("NO_EXPIRY",), broken=True),
    Search("dispatch in two transactions", ("TWO_TRANSACTIONS",), broken=True),
    Search("claim without looking whether it is free", ("BLIND_CLAIM",), broken=True),
    Search("a failure that ignores the cancel flag", ("NO_FLAG",), broken=True),
    Search("retry of what has not ended", ("RETRY_ANY",), broken=True),
    Search("cancel that looks backwards", ("BACKWARDS", "LOOKS=1", "RETRIES=0"), broken=True),
    Search("nobody rescues", ("NO_RESCUE",), broken=True),
    Search(
        "nobody looks for claims whose reply was lost", ("NO_RECONCILE", "LAPSES=0", "DEATHS=0"), broken=True
    ),
    Search("nobody rescues: not every job ends", ("NO_RESCUE",), liveness=True, broken=True),
)


def check(search: Search) -> Found:
    """NotConfigured when Spin or a C compiler is missing; RuntimeError when the model does not compile."""
    with tempfile.TemporaryDirectory(prefix="punctual-model-") as folder:
        _run([_program("spin"), *search.options, "-a", str(MODEL)], folder)
        kind = ["-DNFAIR=6"] if search.liveness else ["-DSAFETY"]
        memory = ["-DCOLLAPSE", f"-DMEMLIM={MEMORY}", "-DNOREDUCE"]
        _run(
            [_program("gcc"), "-O0" if search.broken else "-O2", "-w", *kind, *memory, "-o", "pan", "pan.c"],
            folder,
        )
        arguments = ["-a", "-f"] if search.liveness else []
        said = _run(["./pan", f"-m{DEPTH}", *arguments], folder)
    return _read(said)


def _read(said: str) -> Found:
    errors = re.search(r"errors: (\d+)", said)
    states = re.search(r"([\d.e+]+) states, stored", said)
    if errors is None or states is None:
        raise RuntimeError(f"the verifier did not finish:\n{said}")
    complete = "Search not completed" not in said and "max search depth too small" not in said
    return Found(int(errors[1]), int(float(states[1])), complete, said)


def _program(name: str) -> str:
    if found := shutil.which(name):
        return found
    raise NotConfigured(f"the model needs {name}: apt-get install {name}")


def _run(command: list[str], folder: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode and command[0] != "./pan":
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr
