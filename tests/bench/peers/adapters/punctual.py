"""This project, through its public API. Its workers are `manage.py rundispatcher` and `manage.py runworker`."""

from __future__ import annotations

import os

import django
from django.core.management import call_command

from tests.bench.peers.adapters.order import Order, when
from tests.bench.peers.work import RECORD


def prepare() -> None:
    django.setup()
    call_command("migrate", verbosity=0)
    with open(os.devnull, "w") as nowhere:
        call_command("managepartitions", "ensure", stdout=nowhere)


def schedule(order: Order) -> None:
    django.setup()
    from django.db import connection

    from jobs.models import Job
    from jobs.newjob import NewJob

    connection.ensure_connection()
    for jobs in order.calls():
        if order.bulk:
            Job.objects.schedule_many(NewJob(job_type=RECORD, payload=job, due_at=when(job)) for job in jobs)
        else:
            Job.objects.schedule(RECORD, jobs[0], due_at=when(jobs[0]))
