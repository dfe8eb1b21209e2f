"""`make storm`: a real cluster, a seeded storm of faults, and the judgement that nothing was lost."""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

import django
from django.db import Error, connections

from jobs.errors import SchedulerError
from scheduler_project.children import stop_signals
from tests.demo.screen import Screen
from tests.storm import environment
from tests.storm.cluster import Cluster, CutShort

STOPPED = 130


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0, help="of faults (default: 3)")
    parser.add_argument("--seed", type=int, default=None, help="replay the storm of this seed")
    parser.add_argument(
        "--apart",
        type=float,
        default=0.0,
        help="seconds more between two faults, so that each can be recovered from (default: 0)",
    )
    parser.add_argument("--keep", action="store_true", help="keep the ledger and the logs")
    options = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    screen = Screen()
    folder = Path(tempfile.mkdtemp(prefix="punctual-storm-"))
    folder.chmod(0o755)  # the server's account passes through
    code = 1
    with stop_signals() as stop:
        cluster = None
        try:
            cluster = Cluster(folder, stop)
            code = run(screen, cluster, seed, options.minutes * 60, options.apart)
        except (SchedulerError, Error) as error:
            screen.line(f"storm: {str(error).strip()}")
            code = STOPPED if isinstance(error, CutShort) and stop.is_set() else 1
        finally:
            if cluster is not None:
                connections.close_all()
                cluster.stop()
            if options.keep or code == 1:
                screen.line(f"The ledger and the logs of this storm are in {folder}")
            else:
                shutil.rmtree(folder)
    return code


def run(screen: Screen, cluster: Cluster, seed: int, seconds: float, apart: float) -> int:
    screen.chapter("cluster", "A PostgreSQL of its own, PgBouncer, 3 dispatchers, 4 workers, web.")
    cluster.start_server()
    environment.enter(cluster.folder, cluster.addresses("client", pooled=False))
    django.setup()

    from tests.storm.story import Story  # needs the apps

    return Story(screen, cluster, seed, seconds, apart=apart).tell()


if __name__ == "__main__":
    sys.exit(main())
