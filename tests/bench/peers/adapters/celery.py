"""Celery with Redis. It has no bulk API: one producer sends message after message."""

from __future__ import annotations

import os

from celery import Celery  # type: ignore[import-not-found]

from tests.bench.peers.adapters.order import Order, when
from tests.bench.peers.adapters.record import record

QUEUE = "peers"

app = Celery("peers", broker=os.environ.get("PEERS_REDIS"))
app.conf.update(
    task_ignore_result=True,
    task_default_queue=QUEUE,
    worker_prefetch_multiplier=4,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)
task = app.task(name="record")(record)


def prepare() -> None:
    """Redis needs none."""


def schedule(order: Order) -> None:
    with app.producer_pool.acquire(block=True) as producer:
        for jobs in order.calls():
            for job in jobs:
                task.apply_async(kwargs=job, eta=when(job), producer=producer)


def work(concurrency: int) -> None:
    quiet = ["--loglevel", "ERROR", "--without-gossip", "--without-mingle"]
    app.worker_main(["worker", "--pool", "prefork", "--concurrency", str(concurrency), *quiet])
