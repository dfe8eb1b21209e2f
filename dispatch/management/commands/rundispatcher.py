"""Run the loops: dispatch, admit, hold, tick, rescue, upkeep, rollup, operate. Any number of these processes work side by
side."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dispatch.admitter import Admitter
from dispatch.dispatcher import Dispatcher
from dispatch.heartbeat import Heartbeat
from dispatch.holder import Holder
from dispatch.janitor import Janitor
from dispatch.loop import Loop, Pass
from dispatch.operations import Operations
from dispatch.ready import require_migrated
from dispatch.rescuer import Rescuer
from dispatch.rollup import Rollups
from dispatch.shutdown import Shutdown
from dispatch.ticker import Ticker
from jobs import db, patience
from jobs.clock import boottime
from jobs.conf import conf
from jobs.management.arguments import names
from jobs.models.process import ProcessKind
from jobs.steady import time

logger = logging.getLogger(__name__)

LOOPS = ("dispatch", "admit", "hold", "tick", "rescue", "upkeep", "rollup", "operate")
GENERIC = (Admitter.name, Rescuer.name)
"""Loops whose sessions plan once for all values (`db.connect`)."""
STUCK_SECONDS = 600.0
"""A loop without a pass for so long hangs where no error reaches it: leave, so that whoever runs us starts anew."""
STUCK = 75
LEAVE_SECONDS = 10.0
"""How long all loops together may take to end; what they do is rolled back, and done by the next."""


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--only", type=names, help=f"some of the loops, comma-separated: {', '.join(LOOPS)}"
        )
        parser.add_argument("--database", default="default", help="alias of the database to work on")

    def handle(self, *args: Any, database: str, only: tuple[str, ...] | None, **options: Any) -> None:
        require_migrated(database)
        makers: dict[str, Callable[[], Pass]] = {
            "dispatch": Dispatcher,
            "admit": lambda: Admitter(database),
            "hold": lambda: Holder(database),
            "tick": lambda: Ticker(database),
            "rescue": Rescuer,
            "upkeep": lambda: Janitor(database),
            "rollup": Rollups,
            "operate": lambda: Operations(database),
        }
        if unknown := set(only or ()) - set(makers):
            raise CommandError(f"--only knows {', '.join(makers)}, not {', '.join(sorted(unknown))}")
        heartbeat = Heartbeat(ProcessKind.DISPATCHER)
        loops = [
            Loop(heartbeat, database),
            *(Loop(makers[name](), database, generic=name in GENERIC) for name in only or LOOPS),
        ]
        patience.watch_django(conf().lease.total_seconds())
        shutdown = Shutdown()
        shutdown.install()
        threads = [
            threading.Thread(target=loop.run, args=(shutdown.drain,), name=loop.work.name, daemon=True)
            for loop in loops
        ]
        for thread in threads:
            thread.start()
        logger.info("dispatcher started", extra={"loops": ",".join(only or LOOPS)})
        while not shutdown.drain.wait(1.0):
            self._exit_if_stuck(loops)
        until = time.monotonic() + LEAVE_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        try:
            with db.connect(database, patience=LEAVE_SECONDS) as connection:
                heartbeat.end(connection)
        except psycopg.Error as error:  # the lease of its row runs out by itself
            logger.warning("left without the database", extra={"error": str(error).strip()})

    def _exit_if_stuck(self, loops: list[Loop]) -> None:
        for loop in loops:
            if loop.failing or loop.work.name == Janitor.name:  # a VACUUM of a large day takes its time
                continue
            if boottime() - loop.last_pass > STUCK_SECONDS + loop.work.period:
                logger.critical("a loop is stuck", extra={"loop": loop.work.name})
                os._exit(STUCK)
