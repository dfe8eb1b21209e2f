"""The jobs of the demo: what three tenants ask for, and when."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

from django.utils import timezone

from jobs import clock, declared
from jobs.models import CronDefinition, Job
from jobs.newjob import NewJob
from jobs.registry import registry
from tests.demo.judge import Noted, Slot
from tests.demo.tasks import poison

TENANTS = {"acme": 5, "globex": 3, "initech": 2}
TYPES = {"email.send": 72, "http.request": 20, "demo.sync_contacts": 5, "django.command": 3}
NOW = 0.15
"""Share of the jobs that are due at once."""
BATCH = 500
POISON = 0.5
"""Seconds after which the poison is due."""
MINUTE = timedelta(minutes=1)


class Client:
    """The sibling app: it schedules, and notes what it was promised."""

    def __init__(self, count: int, seconds: float, url: str) -> None:
        self.count, self.seconds, self.url = count, seconds, url
        self.noted: list[Noted] = []
        self.ids: set[UUID] = set()
        self.poison: UUID
        self.begun = self.last_due = clock.now()

    def schedule(self) -> None:
        self.begun = clock.now()
        jobs = self._jobs()
        job = poison.schedule(delay=timedelta(seconds=POISON), tenant="initech")
        self.poison = job.id
        self.noted.append(Noted(job.id, job.due_at, self.begun))
        while batch := list(islice(jobs, BATCH)):
            asked_at = clock.now()
            results = Job.objects.schedule_many(batch)
            for new, (job_id, _) in zip(batch, results, strict=True):
                self.noted.append(Noted(job_id, new.due_at or asked_at, asked_at))
        self.last_due = max(job.due_at for job in self.noted)
        self.ids = {job.job_id for job in self.noted}

    def _jobs(self) -> Iterator[NewJob]:
        chance = random.Random(self.count)  # the same jobs every time
        for number in range(1, self.count):
            (tenant,) = chance.choices(list(TENANTS), list(TENANTS.values()))
            (job_type,) = chance.choices(list(TYPES), list(TYPES.values()))
            due_at = None
            if chance.random() > NOW:
                due_at = self.begun + timedelta(seconds=chance.uniform(1.0, self.seconds))
            payload = self._payload(job_type, number, tenant, chance)
            yield NewJob(job_type=job_type, payload=payload, due_at=due_at, tenant=tenant, group="demo")

    def _payload(self, job_type: str, number: int, tenant: str, chance: random.Random) -> dict[str, Any]:
        if job_type == "email.send":
            subject = f"Reminder {number}: your appointment at {tenant}"
            return {"to": f"customer{number}@{tenant}.example", "subject": subject, "body": "See you soon!\n"}
        if job_type == "http.request":
            return {"url": self.url, "json": {"event": "order.paid", "order": number}}
        if job_type == "django.command":
            return {"name": "clearsessions"}
        return {"failures": chance.choice([0, 0, 0, 1, 1, 2])}


class Crons:
    """The definitions that `tasks.py` declares, as if the scheduler had been down for the last minute: what they
    missed is owed as well."""

    def __init__(self) -> None:
        declared.sync()
        this_minute = timezone.now().replace(second=0, microsecond=0)
        self.cursor = this_minute - timedelta(seconds=1)
        CronDefinition.objects.update(last_slot=self.cursor, misfire_grace=timedelta(hours=1))

    def owed(self, until: datetime) -> list[Slot]:
        first = self.cursor.replace(second=0) + MINUTE
        minutes = int((until - first) / MINUTE) + 1
        types = [job_type.name for job_type in registry.types() if job_type.crons]
        return [Slot(name, first + MINUTE * number) for name in types for number in range(minutes)]
