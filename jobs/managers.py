"""`Job.objects`: `schedule` and `schedule_many`, the only ways a job is born."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connections, models, router, transaction

from jobs import admission, clock, keys, notify, partitions
from jobs.bulk import insert_many
from jobs.conf import conf
from jobs.db import server_cursor
from jobs.errors import PlaceUnknown
from jobs.ids import EPOCH, IdRun, day_of_id
from jobs.newjob import Frame, NewJob, Row, prepare
from jobs.pieces import Pieces
from jobs.querysets import JobQuerySet
from jobs.sql import load
from jobs.tenants import tenant_ids

if TYPE_CHECKING:
    from jobs.models import Job


class JobManager(models.Manager.from_queryset(JobQuerySet)):  # type: ignore[misc]
    def schedule(
        self,
        job_type: str,
        payload: Any = None,
        *,
        due_at: datetime | None = None,
        delay: timedelta | None = None,
        tenant: str = "default",
        queue: str | None = None,
        priority: int = 0,
        group: str | None = None,
        max_attempts: int | None = None,
        unique_key: str | None = None,
        unique_for: timedelta | None = None,
        concurrency_key: str | None = None,
    ) -> Job:
        """Schedule one job in the caller's transaction: rolled back with it, visible with it.

        `due_at`: an aware datetime, rounded up to the millisecond; in the past means now. `delay`: from the database's
        now. Neither: now. `unique_key`: at most one live job per tenant, type and key; then the returned job is the
        first one with `was_created` False, and the call waits for a concurrent caller with the same key.
        `unique_for`: hold the key for this time instead of until the job has ended. `concurrency_key`: of all jobs of the
        tenant with this key at most as many run at once as their type allows (`@job_type(concurrency=1)`); others wait.
        InvalidJob (its kinds: UnknownJobType, InvalidPayload) names the wrong argument; DayMissing, LockTimeout.
        """
        using = self._alias
        now = clock.now(using)
        new = NewJob(
            job_type=job_type,
            payload=payload,
            due_at=due_at,
            delay=delay,
            tenant=tenant,
            queue=queue,
            priority=priority,
            group=group,
            max_attempts=max_attempts,
            unique_key=unique_key,
            unique_for=unique_for,
            concurrency_key=concurrency_key,
        )
        row = prepare(new, Frame(now), IdRun())
        terms = row.terms
        partitions.require([row.due_at], using)
        terms.tenant_id = tenant_ids([terms.tenant], using)[terms.tenant]
        job: Job
        if row.unique_key is None:
            job = self._insert(row, now, using)
        else:
            # A savepoint only where LockTimeout may be raised through it, which must leave the caller's transaction usable.
            with transaction.atomic(using, savepoint=conf().schedule_lock_timeout is not None):
                if (held := self._holder(row, using)) is not None:
                    held.was_created = False
                    return held
                job = self._insert(row, now, using)
        _hint([row], now, using)
        _admit([row], now, using)
        return job

    def schedule_many(self, jobs: Iterable[NewJob]) -> list[tuple[UUID, bool]]:
        """Schedule many in one transaction: `(id, was_created)` for each, in their order. One wrong job refuses all:
        InvalidJob names its index, and nothing is written. They are written as they come, so an iterator of millions
        needs no more memory than their ids and the jobs with a unique key, which are written at the end."""
        using = self._alias
        now = clock.now(using)
        told: list[tuple[UUID, bool]] = []
        keyed: dict[int, Row] = {}
        """By index."""
        pieces = Pieces(jobs, now)
        checked = iter(pieces)
        if (first := next(checked, None)) is None:
            return []
        with transaction.atomic(
            using
        ):  # a savepoint: an error inside COPY must not abort the caller's transaction
            for rows in chain([first], checked):
                keyed |= {len(told) + n: row for n, row in enumerate(rows) if row.unique_key is not None}
                told += [(row.id, True) for row in rows]
                free = [row for row in rows if row.unique_key is None] if keyed else rows
                self._insert_many(free, now, using, pieces.meanwhile)
            if keyed:
                _name_tenants(keyed.values(), using)
                wanted = {index: _wanted(row) for index, row in keyed.items()}
                holders = keys.take(wanted.values(), using)
                for index, want in wanted.items():
                    told[index] = (holders[want.name], holders[want.name] == want.job_id)
                self._insert_many([row for index, row in keyed.items() if told[index][1]], now, using)
        return told

    def _holder(self, row: Row, using: str) -> Job | None:
        """The job that has the key of this one; None: the key is its own now."""
        wanted = _wanted(row)
        for vanished in (False, True):
            holder = keys.take([wanted], using, vanished=vanished)[wanted.name]
            if holder == row.id:
                return None
            if (job := self.using(using).filter(pk=holder).first()) is not None:
                return job  # type: ignore[no-any-return]
        raise PlaceUnknown(f"job {holder} has the unique key {row.unique_key!r} and no row: run checkjobs")

    def _insert_many(
        self, rows: list[Row], now: datetime, using: str, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        if not rows:
            return
        partitions.require_days({day_of_id(row.id) for row in rows}, using)
        _name_tenants(rows, using)
        with connections[using].cursor() as cursor:
            insert_many(cursor, rows, now + conf().look_ahead, meanwhile)
        _hint(rows, now, using)
        _admit(rows, now, using)

    @property
    def _alias(self) -> str:
        """Where jobs are written: a router may read them elsewhere."""
        return self._db or router.db_for_write(self.model, **self._hints)

    async def aschedule(self, job_type: str, payload: Any = None, **options: Any) -> Job:
        """`schedule` for async code."""
        return await sync_to_async(self.schedule)(job_type, payload, **options)

    async def aschedule_many(self, jobs: Iterable[NewJob]) -> list[tuple[UUID, bool]]:
        """`schedule_many` for async code."""
        return await sync_to_async(self.schedule_many)(jobs)

    def _insert(self, row: Row, now: datetime, using: str) -> Job:
        terms = row.terms
        statement = "schedule_entry" if row.due_at <= now + conf().look_ahead else "schedule_timer"
        values: dict[str, Any] = {
            "id": row.id,
            "due_at": row.due_at,
            "tenant_id": terms.tenant_id,
            "job_type": terms.job_type,
            "queue": terms.queue,
            "priority": terms.priority,
            "group": terms.group,
            "max_attempts": terms.max_attempts,
            "cron_id": row.cron_id,
            "unique_key": row.unique_key,
            "unique_for": row.unique_for,
            "concurrency_key": row.concurrency_key,
        }
        connection = connections[using]
        with server_cursor(using) as cursor:
            cursor.execute(load(statement), {**values, "payload": row.payload})
            (created_us,) = cursor.fetchone()  # a number: Django reads times of psycopg slowly
        field = self.model._meta.get_field("payload")
        payload = field.from_db_value(row.payload, None, connection)
        created_at = EPOCH + timedelta(microseconds=created_us)
        job: Job = self.model(**values, payload=payload, created_at=created_at)
        job._state.adding, job._state.db, job.was_created = False, using, True
        return job


def _name_tenants(rows: Collection[Row], using: str) -> None:
    terms = {row.terms for row in rows}
    tenants = tenant_ids({each.tenant for each in terms}, using)
    for each in terms:
        each.tenant_id = tenants[each.tenant]


def _wanted(row: Row) -> keys.Wanted:
    assert row.unique_key is not None  # noqa: S101  # for the type checker
    return keys.Wanted((row.terms.tenant_id, row.terms.job_type, row.unique_key), row.id, row.unique_for)


def _hint(rows: list[Row], now: datetime, using: str) -> None:
    """Wake the workers when something is due before they would look by themselves."""
    soon = now + conf().idle_poll
    if any(row.due_at < soon for row in rows):
        notify.after_commit(using)


def _admit(rows: list[Row], now: datetime, using: str) -> None:
    """What is due by now waits in its queue for its concurrency key; what is due later, for its time first."""
    until = now + conf().look_ahead
    keyed = [row for row in rows if row.concurrency_key is not None]
    admission.after_commit({row.key for row in keyed if row.key and row.due_at <= until}, using)
