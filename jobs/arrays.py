"""Array parameters in PostgreSQL's binary format: psycopg writes lists as text, element by element, at 1-2 us each.

Pass `uuids(ids)` for a `%(ids)s::uuid[]`. None inside is NULL. The format: array_recv in PostgreSQL's source.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_NULL = b"\xff\xff\xff\xff"
_UUID = b"\x00\x00\x00\x10"
_INT8 = struct.Struct(">iq")


class _Array:
    oid = 0
    element = 0
    __slots__ = ("data",)

    def __init__(self, parts: Sequence[bytes]) -> None:
        count = len(parts)
        head = struct.pack(">iii", 1, 1, self.element) + struct.pack(">ii", count, 1)
        self.data = head + b"".join(parts) if count else struct.pack(">iii", 0, 0, self.element)


class _Uuids(_Array):
    oid, element = 2951, 2950


class _Int8s(_Array):
    oid, element = 1016, 20


class _Timestamps(_Array):
    oid, element = 1185, 1184


class _Texts(_Array):
    oid, element = 1009, 25


def uuids(values: Iterable[UUID | None]) -> _Array:
    return _Uuids([_NULL if v is None else _UUID + v.int.to_bytes(16, "big") for v in values])


def int8s(values: Iterable[int | None]) -> _Array:
    return _Int8s([_NULL if v is None else _INT8.pack(8, v) for v in values])


def timestamps(values: Iterable[datetime | None]) -> _Array:
    """Aware datetimes."""
    return _Timestamps([_NULL if v is None else _INT8.pack(8, microseconds(v)) for v in values])


def texts(values: Iterable[str | None]) -> _Array:
    return _Texts([_NULL if v is None else _text(v.encode()) for v in values])


def microseconds(moment: datetime) -> int:
    """Since 2000-01-01 UTC: how PostgreSQL keeps and sends a timestamptz."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _text(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        data: bytes = obj.data
        return data


for _kind in (_Uuids, _Int8s, _Timestamps, _Texts):
    psycopg.adapters.register_dumper(
        _kind, type(f"{_kind.__name__}Dumper", (_ArrayDumper,), {"oid": _kind.oid})
    )
