"""Admission to concurrency keys for those who work on Django's connection: after their commit."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from jobs.db import ServerBound, tells_commits
from jobs.leases.gate import admit
from jobs.results import Key

_asked: WeakKeyDictionary[BaseDatabaseWrapper, set[Key]] = WeakKeyDictionary()
"""By connection, and so by thread: one admission for all that a transaction did."""


def after_commit(keys: set[Key], using: str) -> None:
    """Fill the room of these keys when the caller's transaction commits (at once in autocommit). An error there does not
    reach the caller, whose work is committed: a dispatcher sees to it."""
    if not keys or not tells_commits(using):
        return
    _asked.setdefault(connections[using], set()).update(keys)
    transaction.on_commit(lambda: _admit(using), using=using, robust=True)


def _admit(using: str) -> None:
    """The first of a transaction's calls finds the keys of all. Those of one that was rolled back do no harm. A test that
    calls what waits for a commit inside a transaction of its own leaves it to a dispatcher."""
    if (keys := _asked.pop(connections[using], None)) and not connections[using].in_atomic_block:
        raw: Any = ServerBound(connections[using].connection)
        admit(raw, keys, using)
