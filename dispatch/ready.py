"""Before a long-running command starts: is there a migrated PostgreSQL at the other end?"""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor


def require_migrated(using: str) -> None:
    """CommandError with one clear sentence when the database is not there or not migrated."""
    if using not in connections:
        raise CommandError(
            f"there is no database {using!r} in the settings; they have {', '.join(connections)}"
        )
    try:
        executor = MigrationExecutor(connections[using])
        pending = executor.migration_plan(
            [node for node in executor.loader.graph.leaf_nodes() if node[0] == "jobs"]
        )
    except DatabaseError as error:
        reason = " ".join(str(error).split())  # libpq's has several lines
        raise CommandError(f"the database {using!r} cannot be reached: {reason}") from error
    finally:
        connections[using].close()
    if pending:
        raise CommandError(
            f"the database {using!r} is not migrated; run `manage.py migrate --database {using}`"
        )
