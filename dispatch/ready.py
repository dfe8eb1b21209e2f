"""Before a long-running command starts: is there a migrated PostgreSQL at the other end, and are its streams open?"""

from __future__ import annotations

import os

from django.core.management.base import CommandError
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor


def require_migrated(using: str) -> None:
    """CommandError with one clear sentence when the database is not there or not migrated."""
    if using not in connections:
        raise CommandError(
            f"there is no database {using!r} in the settings; they have {', '.join(connections)}"
        )
    if not connections[using].settings_dict["AUTOCOMMIT"]:
        raise CommandError(
            f"the database {using!r} has AUTOCOMMIT off in the settings: what atomic handlers do would never be committed"
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


def open_streams() -> None:
    """Standard input, output and errors that whoever started us has closed, on nothing. Else the next file gets the number,
    the memory that a child shares with its supervisor above all, and what a body prints is written there."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            os.set_inheritable(number, True)
