"""An atomic handler: its writes and its completion commit in one transaction, or not at all."""

from __future__ import annotations

import logging
import random
from datetime import datetime
from typing import Any

from django.db import OperationalError, connections, transaction
from django.db.transaction import TransactionManagementError

from dispatch.executor import AsyncLoop, call, completed, result_of_error
from dispatch.settler import RETRY
from jobs import admission, db
from jobs.conf import conf
from jobs.context import Context
from jobs.leases import settle
from jobs.registry import JobType
from jobs.results import Claim, Result, Settlement
from jobs.session import milliseconds
from jobs.steady import time

logger = logging.getLogger(__name__)


class Fenced(Exception):
    """Another process has taken the job over: everything this one wrote is rolled back."""


def execute_atomic(
    job_type: JobType, context: Context, claim: Claim, started_at: datetime, using: str, loop: AsyncLoop
) -> Result | None:
    """None when the transaction has recorded the completion, or was fenced; else what remains to be settled.

    READ COMMITTED, no lock on the entry before the end: a cancel or a heartbeat never waits for a body.
    """
    try:
        with transaction.atomic(using):
            connection = connections[using]
            with connection.cursor() as cursor:
                cursor.execute(f"SET TRANSACTION ISOLATION LEVEL READ COMMITTED; {_idle(job_type)}")
            value = call(job_type, context, claim.payload or "{}", loop, None)
            if (
                connection.needs_rollback
            ):  # it would be rolled back without a word, and the completion with it
                raise TransactionManagementError("the body has marked its transaction to be rolled back")
            settlement = Settlement(claim.held, completed(value), started_at)
            if claim.held.key is not None:
                admission.after_commit({claim.held.key}, using)
            raw: Any = db.ServerBound(connection.connection)
            if claim.held.job_id not in settle(raw, [settlement]).fates:
                raise Fenced
    except Fenced:
        logger.warning("fenced", extra={"job": str(claim.held.job_id), "type": claim.held.job_type})
        return None
    except OperationalError as error:
        if _was_committed(claim, using):
            return None
        return result_of_error(error, job_type, context)
    except BaseException as error:
        return result_of_error(error, job_type, context)
    return None


def _idle(job_type: JobType) -> str:
    """The server ends what we leave behind should we vanish: no body may think for longer than its hard timeout."""
    hard = (job_type.timeout or conf().lease) + conf().grace  # an atomic type has a timeout
    return f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds(hard.total_seconds())}"


def _was_committed(claim: Claim, using: str) -> bool:
    """After a commit whose reply was lost: an entry that still bears our token says it was rolled back. Asked until the
    database answers: without an answer nobody could settle the job, and its lease is renewed for ever."""
    wait = RETRY[0]
    while True:
        try:
            with db.connect(using, patience=conf().lease.total_seconds()) as connection:
                row = connection.execute(
                    "SELECT FROM jobs_queueentry WHERE job_id = %s AND lease_token = %s FOR UPDATE",
                    [claim.held.job_id, claim.held.lease_token],
                ).fetchone()
        except db.INFRASTRUCTURE as error:
            logger.warning(
                "a commit is in doubt", extra={"job": str(claim.held.job_id), "error": str(error).strip()}
            )
            time.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311
            wait = min(RETRY[1], wait * 2)
        else:
            return row is None
