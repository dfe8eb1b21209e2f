"""A search by an operator never runs for long: it gives up and says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import OperationalError, connections, transaction

PATIENCE = timedelta(seconds=2)
_CANCELLED = "57014"


class TooSlow(Exception):
    """The statement was given up."""


@contextmanager
def bounded(using: str, patience: timedelta | None = None) -> Iterator[None]:
    """Statements in here end after `patience` (PATIENCE) each with TooSlow. Without JIT: compiling the plan of thirty
    days cannot be interrupted and took longer than the whole timeout."""
    limit = max(1, round((patience or PATIENCE) / timedelta(milliseconds=1)))
    try:
        with transaction.atomic(using):
            with connections[using].cursor() as cursor:
                cursor.execute(
                    "SELECT set_config('statement_timeout', %s, true), set_config('jit', 'off', true), "
                    "set_config('max_parallel_workers_per_gather', '0', true)",
                    [f"{limit}ms"],
                )
            yield
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) == _CANCELLED:
            raise TooSlow from error
        raise
