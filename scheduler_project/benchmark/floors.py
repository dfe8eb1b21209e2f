"""Floors: the least that PostgreSQL can do of the kind, measured in the same run on bare tables in the same database."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, LiteralString, NamedTuple
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from jobs import db

Connection = psycopg.Connection[Any]


class BareRow(NamedTuple):
    id: UUID
    due_at: datetime
    tenant_id: int
    job_type: str
    queue: str
    priority: int
    payload: Jsonb
    max_attempts: int


@dataclass
class Floor:
    """One kind of sample, taken any number of times; the floor is their median."""

    unit: ClassVar[str]
    sql: ClassVar[tuple[LiteralString, ...]]
    """The table's making first, then what is measured."""
    connection: Connection
    samples: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.connection.execute(self.sql[0])

    @property
    def value(self) -> float:
        return statistics.median(self.samples)

    def as_json(self) -> dict[str, Any]:
        return {
            "value": round(self.value, 4),
            "unit": self.unit,
            "samples": len(self.samples),
            "least": round(min(self.samples), 4),
            "most": round(max(self.samples), 4),
            "sql": list(self.sql),
        }


class Commit(Floor):
    """A durable commit of one narrow row."""

    unit = "ms"
    sql = (
        "CREATE TABLE floor_commit (id bigint PRIMARY KEY)",
        "INSERT INTO floor_commit SELECT coalesce(max(id), 0) + 1 FROM floor_commit",
    )

    def measure(self, times: int = 200) -> None:
        for _ in range(times):
            begun = time.perf_counter()
            self.connection.execute(self.sql[1], prepare=True)
            self.samples.append((time.perf_counter() - begun) * 1000)


class DeleteLoop(Floor):
    """Two connections that empty a queue-shaped table in the order of claims, as a bare queue takes its rows."""

    unit = "rows per second"
    sql = (
        "CREATE TABLE floor_queue (LIKE jobs_queueentry INCLUDING DEFAULTS INCLUDING INDEXES)",
        "DELETE FROM floor_queue WHERE job_id = ANY(ARRAY("  # as IN it may be planned to run once a row
        "SELECT job_id FROM floor_queue "
        "WHERE queue = 'benchmark.noop' AND lease_token IS NULL AND parked IS NULL AND run_at <= now() "
        "ORDER BY tenant_id, priority DESC, run_at, job_id LIMIT 500 FOR UPDATE SKIP LOCKED"
        ")) RETURNING job_id, due_at, tenant_id, job_type, attempt",
    )
    _FILL: LiteralString = (
        "INSERT INTO floor_queue (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, max_attempts, "
        "crashes, cancel_requested) SELECT gen_random_uuid(), now(), now(), n %% 50, 'benchmark.noop', "
        "'benchmark.noop', 0, 0, 20, 0, false FROM generate_series(1, %s) n"
    )

    def measure(self, rows: int) -> None:
        self.connection.execute(self._FILL, [rows])
        threads = [threading.Thread(target=self._delete) for _ in range(2)]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.samples.append(rows / (time.perf_counter() - begun))
        self.connection.execute("TRUNCATE floor_queue")  # leave nothing for vacuum to do meanwhile

    def _delete(self) -> None:
        with db.connect() as connection:
            while connection.execute(self.sql[1], prepare=True).rowcount:
                pass


class Copy(Floor):
    """Ready rows into tables like those of a scheduled job, the job's and its timer's, with their indexes: no
    partitions, no checks, one transaction."""

    unit = "rows per second"
    sql = (
        "CREATE TABLE floor_copy (LIKE jobs_job INCLUDING DEFAULTS INCLUDING INDEXES); "
        "CREATE TABLE floor_copy_timer (LIKE jobs_timer INCLUDING DEFAULTS INCLUDING INDEXES)",
        "COPY floor_copy (id, due_at, tenant_id, job_type, queue, priority, payload, max_attempts) "
        "FROM STDIN (FORMAT binary)",
        "COPY floor_copy_timer (job_id, due_at, tenant_id, job_type, queue, priority, max_attempts) "
        "FROM STDIN (FORMAT binary)",
    )
    _TYPES = ("uuid", "timestamptz", "int8", "text", "text", "int2", "jsonb", "int4")

    def measure(self, rows: Sequence[BareRow]) -> None:
        timers = [row[:6] + row[7:] for row in rows]
        begun = time.perf_counter()
        with self.connection.transaction(), self.connection.cursor() as cursor:
            self._copy(cursor, self.sql[1], self._TYPES, rows)
            self._copy(cursor, self.sql[2], self._TYPES[:6] + self._TYPES[7:], timers)
        self.samples.append(len(rows) / (time.perf_counter() - begun))
        self.connection.execute("TRUNCATE floor_copy, floor_copy_timer")

    def _copy(self, cursor: Any, statement: LiteralString, types: Sequence[str], rows: Sequence[Any]) -> None:
        with cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)


class Insert(Floor):
    """One such row and its commit."""

    unit = "ms"
    sql = (
        "CREATE TABLE floor_insert (LIKE jobs_job INCLUDING DEFAULTS INCLUDING INDEXES)",
        "INSERT INTO floor_insert (id, due_at, tenant_id, job_type, queue, priority, payload, max_attempts) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
    )

    def measure(self, rows: Sequence[BareRow]) -> None:
        for row in rows:
            begun = time.perf_counter()
            self.connection.execute(self.sql[1], row, prepare=True)
            self.samples.append((time.perf_counter() - begun) * 1000)


class WalOfRow(Floor):
    """WAL of one row like a job's with its key as the only index, 100 rows a transaction, in random order of due times."""

    unit = "bytes"
    sql = (
        "CREATE TABLE floor_wal (LIKE jobs_job INCLUDING DEFAULTS, PRIMARY KEY (due_at, id))",
        "INSERT INTO floor_wal (id, due_at, tenant_id, job_type, queue, priority, payload, max_attempts) "
        "SELECT gen_random_uuid(), now() + random() * interval '30 days', 1, 'benchmark.noop', 'benchmark.noop', 0, "
        "%s::jsonb, 20 FROM generate_series(1, 100)",
    )

    def measure(self, rows: int, payload: str, lsn: Callable[[], int]) -> None:
        """`lsn`: where the log ends."""
        batches, begun = max(1, rows // 100), lsn()
        for _ in range(batches):
            self.connection.execute(self.sql[1], [payload], prepare=True)
        self.samples.append((lsn() - begun) / (batches * 100))
        self.connection.execute("TRUNCATE floor_wal")
