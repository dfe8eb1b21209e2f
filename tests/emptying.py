"""Empty the tables after a test with real commits."""

from __future__ import annotations

from django.db import connections

TABLES = (
    "jobs_timer", "jobs_queueentry", "jobs_outcome", "jobs_attempt", "jobs_job", "jobs_uniquekey", "jobs_keylimit",
    "jobs_process", "jobs_queue", "jobs_crontick", "jobs_crondefinition", "jobs_cronrun", "jobs_cronrevision",
    "jobs_operatoraction", "jobs_operationchunk", "jobs_operation", "jobs_savedview", "jobs_tenantmember", "jobs_rollup",
    "jobs_rollupprogress", "jobs_backlog", "jobs_forecast", "jobs_preference", "jobs_triage",
    "jobs_tenantqueuelimit", "jobs_tenant", "jobs_ratebucket", "jobs_hold",
)  # fmt: skip


def empty_tables() -> None:
    """By DELETE: the TRUNCATE of Django's flush makes new files for every leaf and index, over a second a test."""
    with connections["default"].cursor() as cursor:
        # As a replica would: the audit refuses to be emptied.
        deletes = "; ".join(f"DELETE FROM {table}" for table in TABLES)
        cursor.execute(
            f"SET session_replication_role = replica; {deletes}; SET session_replication_role = origin"
        )
