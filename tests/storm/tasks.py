"""The handlers of the storm. Each takes the number that the client gave its job, and keeps the ledger."""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta

from django.db import connection

from jobs.context import Context
from jobs.errors import Snooze
from jobs.registry import cron, job_type
from tests.storm.environment import DOOMED_ATTEMPTS
from tests.storm.ledger import noted

SHORT, NARROW = "storm.short", "storm.narrow"
STEP = 0.05


def work(context: Context, seconds: float) -> None:
    """Takes so long, and asks meanwhile whether it should go on."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        context.heartbeat()
        time.sleep(min(STEP, left))


@job_type("storm.short", queue=SHORT)
@noted
def short(context: Context, number: int, seconds: float) -> None:
    work(context, seconds)


@job_type("storm.slow")
@noted
def slow(context: Context, number: int, seconds: float) -> None:
    work(context, seconds)


@job_type("storm.deaf", queue="storm.slow")
@noted
def deaf(context: Context, number: int, seconds: float) -> None:
    """Never asks."""
    time.sleep(seconds)


@job_type("storm.narrow", queue=NARROW)
@noted
def narrow(context: Context, number: int, seconds: float) -> None:
    """In a queue with a limit."""
    work(context, seconds)


@job_type("storm.unique", queue=SHORT)
@noted
def unique(context: Context, number: int, seconds: float) -> None:
    work(context, seconds)


@job_type("storm.flaky", queue=SHORT)
@noted
def flaky(context: Context, number: int, failures: int) -> None:
    if context.attempt <= failures:
        raise ConnectionError("the other end did not answer")


@job_type("storm.doomed", queue=SHORT, max_attempts=DOOMED_ATTEMPTS)
@noted
def doomed(context: Context, number: int) -> None:
    raise ValueError("never")


@job_type("storm.snooze", queue=SHORT)
@noted
def snooze(context: Context, number: int, until: float) -> None:
    """Comes back until a moment of boot time."""
    if (left := until - time.clock_gettime(time.CLOCK_BOOTTIME)) > 0:
        raise Snooze(timedelta(seconds=min(left, 2.0)))


@job_type("storm.atomic", atomic=True, timeout=timedelta(seconds=20))
@noted
def atomic(context: Context, number: int, seconds: float) -> None:
    """Its row and its completion commit together, or neither."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO storm_effect (job_id, attempt) VALUES (%s, %s)", [context.job_id, context.attempt]
        )
    work(context, seconds)


@job_type("storm.poison")
@noted
def poison(context: Context, number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@cron("* * * * *", name="minutely", tenant="beta")
@cron(every=timedelta(seconds=3), name="often")
@cron(every=timedelta(seconds=7), name="alone", overlap="skip")
@job_type("storm.recurring", queue=SHORT)
@noted
def recurring(context: Context) -> None:
    work(context, 0.2)
