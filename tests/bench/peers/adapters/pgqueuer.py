"""PgQueuer, on asyncpg and uvloop."""

from __future__ import annotations

import json
import logging
import time
from datetime import timedelta
from typing import Any

import asyncpg  # type: ignore[import-not-found]
import uvloop  # type: ignore[import-not-found]
from pgqueuer import PgQueuer  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]

from tests.bench.peers.adapters.order import Job, Order
from tests.bench.peers.adapters.record import record

ENTRYPOINT = "record"

logging.disable(logging.WARNING)


def prepare() -> None:
    async def run() -> None:
        await Queries(AsyncpgDriver(await asyncpg.connect())).install()

    uvloop.run(run())


def schedule(order: Order) -> None:
    async def run() -> None:
        queries = Queries(AsyncpgDriver(await asyncpg.connect()))
        for jobs in order.calls():
            if order.bulk:
                count = len(jobs)
                await queries.enqueue(
                    [ENTRYPOINT] * count,
                    [_payload(job) for job in jobs],
                    [0] * count,
                    [_delay(job) for job in jobs],
                )
            else:
                await queries.enqueue(ENTRYPOINT, _payload(jobs[0]), 0, _delay(jobs[0]))

    uvloop.run(run())


def work(batch: int, wait: float) -> None:
    async def run() -> None:
        worker = PgQueuer(AsyncpgDriver(await asyncpg.connect()))

        async def body(job: Any) -> None:
            record(**json.loads(job.payload))

        worker.entrypoint(ENTRYPOINT)(body)
        await worker.run(batch_size=batch, dequeue_timeout=timedelta(seconds=wait))

    uvloop.run(run())


def _payload(job: Job) -> bytes:
    return json.dumps(job).encode()


def _delay(job: Job) -> timedelta:
    """It takes delays only."""
    return timedelta(seconds=max(0.0, job["due"] - time.time()))
