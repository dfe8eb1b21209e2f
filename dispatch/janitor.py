"""Upkeep: days ahead and expired days, sealed leaves, expired keys, old process rows, deleted tenants."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import psycopg

from jobs import partitions, tenants
from jobs.checks import MIN_READY_DAYS
from jobs.conf import conf
from jobs.partitions.catalog import ALARM_DAYS

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

DELETE_BATCH = 5000
_AHEAD = (
    "UPDATE jobs_ratebucket SET refilled_at = clock_timestamp() WHERE refilled_at > clock_timestamp() + interval '1 s'",
    "UPDATE jobs_operation SET next_at = clock_timestamp(), heartbeat_at = clock_timestamp() "
    "WHERE ended_at IS NULL AND heartbeat_at > clock_timestamp() + interval '1 s'",
    "UPDATE jobs_rollupprogress SET first = least(first, date_trunc('minute', clock_timestamp())), "
    "second = least(second, date_trunc('minute', clock_timestamp())), "
    "hour = least(hour, date_trunc('hour', clock_timestamp())) WHERE first > clock_timestamp() + interval '1 s'",
)
"""Times of a server's clock that was set back since, or of a server that another has replaced: nothing would be saved up,
no chunk begun and no minute counted before they come again."""


class Janitor:
    name = "upkeep"
    period = 60.0
    batch = DELETE_BATCH

    def __init__(self, using: str = "default") -> None:
        self.using = using

    def run_once(self, connection: Connection, now: datetime) -> int:
        self._keep_days(now)
        for statement in _AHEAD:
            connection.execute(statement)
        deleted = tenants.sweep(connection, now)
        deleted += self._delete(
            connection,
            "DELETE FROM jobs_uniquekey WHERE id IN "
            "(SELECT id FROM jobs_uniquekey WHERE expires_at <= %s LIMIT %s FOR UPDATE SKIP LOCKED)",
            now,
        )
        deleted += self._delete(
            connection,
            "DELETE FROM jobs_cronrevision WHERE id IN "
            "(SELECT id FROM jobs_cronrevision WHERE until <= %s AND settled LIMIT %s FOR UPDATE SKIP LOCKED)",
            now - conf().retention,
        )
        deleted += self._delete(
            connection,
            "DELETE FROM jobs_operatoraction WHERE id IN "
            "(SELECT id FROM jobs_operatoraction WHERE at <= %s LIMIT %s FOR UPDATE SKIP LOCKED)",
            now - conf().audit_retention,
        )
        # A process that vanished without a word is marked ended once nothing refers to it any more.
        connection.execute(
            "UPDATE jobs_process p SET ended_at = lease_expires_at WHERE ended_at IS NULL AND lease_expires_at < %s "
            "AND NOT EXISTS (SELECT FROM jobs_queueentry e WHERE e.process_id = p.id)",
            [now - conf().lease],
        )
        return deleted + self._delete(
            connection,
            "DELETE FROM jobs_process WHERE id IN "
            "(SELECT id FROM jobs_process WHERE ended_at <= %s LIMIT %s FOR UPDATE SKIP LOCKED)",
            now - conf().retention,
        )

    def interrupted(self) -> None:
        """Every step is found again from the catalog."""

    def _keep_days(self, now: datetime) -> None:
        if made := partitions.ensure(partitions.wanted_days(now), self.using):
            logger.info("made days", extra={"days": len(made), "last": made[-1].isoformat()})
        report = partitions.expire(now, self.using)
        for day in report.dropped:
            logger.info("dropped day", extra={"day": day.isoformat()})
        for day, reason in {**report.kept, **report.blocked}.items():
            logger.warning("expired day stays", extra={"day": day.isoformat(), "reason": reason})
        partitions.seal(now, self.using)
        plan = partitions.plan(now, self.using)
        if plan.ready < MIN_READY_DAYS:
            logger.error("few days are ready", extra={"ready": plan.ready})
        if plan.days >= ALARM_DAYS:
            logger.error("many days exist", extra={"days": plan.days, "most": partitions.MAX_DAYS})

    def _delete(self, connection: Connection, statement: Any, before: datetime) -> int:
        return connection.execute(statement, [before, DELETE_BATCH]).rowcount
