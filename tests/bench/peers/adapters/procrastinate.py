"""Procrastinate."""

from __future__ import annotations

import asyncio
import logging

import procrastinate  # type: ignore[import-not-found]

from tests.bench.peers.adapters.order import Order, when
from tests.bench.peers.adapters.record import record_async

QUEUE = "peers"

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo="", min_size=2, max_size=10))
task = app.task(name="record", queue=QUEUE)(record_async)
logging.disable(logging.WARNING)


def prepare() -> None:
    async def run() -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    asyncio.run(run())


def schedule(order: Order) -> None:
    async def run() -> None:
        async with app.open_async():
            for jobs in order.calls():
                at = task.configure(schedule_at=when(jobs[0]))  # one due time per call
                if order.bulk:
                    await at.batch_defer_async(*jobs)
                else:
                    await at.defer_async(**jobs[0])

    asyncio.run(run())


def work(concurrency: int, poll: float) -> None:
    async def run() -> None:
        async with app.open_async():
            await app.run_worker_async(
                queues=[QUEUE], concurrency=concurrency, fetch_job_polling_interval=poll
            )

    asyncio.run(run())
