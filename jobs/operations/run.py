"""Run: one chunk of one operation, in one transaction that holds the operation's row.

That lock is the fence: while it is held no other dispatcher works on this operation, and the jobs, the chunk's row and
the cursor are written together or not at all. A process that dies leaves nothing to clean up and nothing done twice.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connections, transaction
from django.db.models.functions import Now

from jobs import clock, operator, scope
from jobs.conf import conf
from jobs.ids import dues_of
from jobs.models import Backlog, Job, Kind, Operation, OperationChunk, OperationState, Outcome
from jobs.models.operation import OPEN, OVER
from jobs.operations.apply import Applied, apply, revert
from jobs.operations.holding import release
from jobs.operations.limits import BULK, LONGEST, unapproved
from jobs.search import SearchError, compile_query
from jobs.search.guard import TooSlow
from jobs.search.scan import scan
from jobs.session import milliseconds

PROBE_WAIT = timedelta(minutes=10)
"""So long the jobs of a probe have to end."""
PROBE_LOOK = timedelta(seconds=2)
PROBE_ENDED, PROBE_FAILED = 0.8, 0.2
"""Judged when this part has ended; it pauses when more than this part of them failed again."""
BEHIND = timedelta(seconds=10)
"""When the oldest waiting job is older, retries slow down to a quarter."""


def run_chunk(using: str = "default", operation_id: int | None = None) -> int | None:
    """Do what is next of the operation that has waited longest; how many jobs were looked at. None: there is nothing to
    do now, or others are at it."""
    with transaction.atomic(using):
        _bound_idleness(using)
        found = Operation.objects.using(using).select_for_update(skip_locked=True)
        found = found.filter(state__in=OPEN, next_at__lte=Now()).order_by("next_at")
        operation = (found if operation_id is None else found.filter(pk=operation_id)).first()
        if operation is None:
            return None
        now = clock.asked(using)
        operation.heartbeat_at = now
        operation.started_at = operation.started_at or now
        looked = _step(operation, now, using)
        if operation.state in OVER:
            release(operation, using)
        operation.save(using=using)
        return looked


def _bound_idleness(using: str) -> None:
    """Who vanishes in the middle of a chunk holds its operation for a lease, not for as long as TCP believes in him."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT set_config('idle_in_transaction_session_timeout', %s, true)",
            [str(milliseconds(conf().lease.total_seconds()))],
        )


def give_up(using: str, error: Exception) -> bool:
    """Pause the operation that has waited longest, because its chunk raised what no retry can mend; whether there was
    one. The others go on."""
    with transaction.atomic(using):
        found = Operation.objects.using(using).select_for_update(skip_locked=True)
        operation = found.filter(state__in=OPEN, next_at__lte=Now()).order_by("next_at").first()
        if operation is None:
            return False
        _halt(operation, OperationState.PAUSED, f"{type(error).__name__}: {error}")
        operation.save(using=using, update_fields=["state", "note", "ended_at"])
        return True


def _step(operation: Operation, now: datetime, using: str) -> int:
    refused, within = _judge_author(operation, using)
    if refused:
        _halt(operation, OperationState.FAILED, refused, now)
        return 0
    if operation.state == OperationState.PROBING:
        return _judge_probe(operation, now, using)
    done = operation.changed + operation.requested
    allowed = unapproved(operation)
    if allowed is not None and done >= allowed:
        note = f"It has changed {done:,} jobs; somebody else approves more." if done else ""
        _halt(operation, OperationState.ASKED, note)
        return 0
    room = min(operation.ceiling, operation.ceiling if allowed is None else allowed) - done
    if room <= 0:
        _halt(
            operation,
            OperationState.PAUSED,
            f"It has changed {operation.ceiling:,} jobs, which is its limit.",
        )
        return 0
    if operation.undoes:
        return _undo(operation, now, using)
    try:
        return _chunk(operation, within, min(_size(operation), room), now, using)
    except SearchError as error:
        _halt(operation, OperationState.FAILED, f"Its search cannot be understood any more: {error}", now)
    except TooSlow:
        _halt(operation, OperationState.PAUSED, "Its search takes too long: stop it, and narrow the search.")
    return 0


def _size(operation: Operation) -> int:
    """A probe is one small chunk; afterwards at most what a second allows."""
    if operation.probe and not operation.chunks:
        return operation.probe
    return max(1, min(operation.chunk_size, operation.rate))


def _chunk(operation: Operation, within: scope.Scope, size: int, now: datetime, using: str) -> int:
    query = compile_query(operation.query, operation.cutoff, scope=within, limit=LONGEST)
    found = scan(query, operation.cursor, size, using)
    kept, late = _before_cutoff(operation, found.ids, using)
    applied = apply(operation, kept, using) if kept else Applied()
    applied.skipped += late
    _tell(operation, applied, len(found.ids), now, using)
    if found.cursor is None:
        _end(operation, now)
    elif operation.probe and operation.chunks == 1:
        operation.state = OperationState.PROBING
        operation.next_at = now + PROBE_LOOK
    else:
        operation.state = OperationState.RUNNING
    operation.cursor = found.cursor or operation.cursor
    return len(found.ids)


def _undo(operation: Operation, now: datetime, using: str) -> int:
    """The chunks of the other operation, one after the other."""
    undone: Any = operation.undoes
    piece = undone.pieces.using(using).filter(number=operation.chunks + 1).first()
    if piece is None:
        _end(operation, now)
        return 0
    applied = revert(operation, undone, piece.ids, piece.befores, using) if piece.ids else Applied()
    operation.state = OperationState.RUNNING
    _tell(operation, applied, len(piece.ids), now, using)
    return len(piece.ids)


def _tell(operation: Operation, applied: Applied, looked: int, now: datetime, using: str) -> None:
    operation.chunks += 1
    OperationChunk.objects.using(using).create(
        operation=operation,
        number=operation.chunks,
        looked=looked,
        ids=applied.ids,
        befores=applied.befores,
        skipped=dict(applied.skipped),
    )
    operation.looked += looked
    operation.changed += applied.changed
    operation.requested += applied.requested
    operation.skipped = dict(Counter(operation.skipped) + applied.skipped)
    wait = timedelta(seconds=looked / operation.rate)
    if operation.verb == "retry" and _is_behind(now, using):
        wait *= 4
    operation.next_at = now + wait


def _before_cutoff(operation: Operation, ids: Any, using: str) -> tuple[list[Any], Counter[str]]:
    """Nobody has seen in the preview what was scheduled, or failed again, afterwards."""
    born = set(
        Job.objects.using(using)
        .filter(pk__in=ids, created_at__gt=operation.cutoff)
        .values_list("pk", flat=True)
    )
    ended: set[Any] = set()
    if operation.verb == "retry":
        later = Outcome.objects.using(using).filter(job_id__in=ids, finished_at__gt=operation.cutoff)
        ended = set(later.values_list("job_id", flat=True)) - born
    skipped = Counter({"scheduled after it was started": len(born), "ended after it was started": len(ended)})
    return [job_id for job_id in ids if job_id not in born | ended], +skipped


def _judge_author(operation: Operation, using: str) -> tuple[str, scope.Scope]:
    """Why it may not go on, and the tenants it may touch: as now, and never more than when it was started."""
    user: Any = get_user_model()._default_manager.using(using).filter(pk=operation.author_id or 0).first()
    frozen = None if operation.scope is None else frozenset(operation.scope)
    if user is None:
        return "The account of who started it is gone.", frozen
    verb = operation.undoes.verb if operation.undoes else operation.verb
    for permission in (operator.COMMANDS[verb].permission, BULK):
        if not user.has_perm(permission):
            return f"{operation.author_name} has not the permission {permission} any more.", frozen
    seen = scope.scope_of(user)
    return "", seen if frozen is None else frozen if seen is None else frozen & seen


def _judge_probe(operation: Operation, now: datetime, using: str) -> int:
    piece = operation.pieces.using(using).get(number=1)
    ended, failed = _ended_and_failed(piece.ids, operation.action_id, using)
    operation.next_at = now + PROBE_LOOK
    if piece.ids and ended < PROBE_ENDED * len(piece.ids):
        if now - piece.at > PROBE_WAIT:
            note = f"Of the first {len(piece.ids)} jobs only {ended} have ended after {PROBE_WAIT.seconds // 60} minutes."
            _halt(operation, OperationState.PAUSED, note)
    elif ended and failed > PROBE_FAILED * ended:
        _halt(operation, OperationState.PAUSED, f"Of the first {ended} jobs {failed} failed again.")
    else:
        operation.state = OperationState.RUNNING
    return 0


def _ended_and_failed(ids: Any, action_id: int, using: str) -> tuple[int, int]:
    """A job that failed again and waits for its next attempt counts as failed."""
    values = {"ids": list(ids), "dues": dues_of(ids)}
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT count(*), count(*) FILTER (WHERE state = 'failed') FROM jobs_outcome "
            "WHERE job_id = ANY(%(ids)s::uuid[]) AND due_at = ANY(%(dues)s::timestamptz[])",
            values,
        )
        ended, failed = cursor.fetchone()
        cursor.execute(
            "SELECT count(*) FROM jobs_queueentry WHERE job_id = ANY(%(ids)s::uuid[]) AND lease_token IS NULL "
            "AND waits = 'retry'",
            values,
        )
        (again,) = cursor.fetchone()
    return ended + again, failed + again


def _is_behind(now: datetime, using: str) -> bool:
    oldest = Backlog.objects.using(using).filter(kind=Kind.ALL).values_list("oldest", flat=True).first()
    return oldest is not None and now - oldest > BEHIND


def _halt(operation: Operation, state: OperationState, note: str, now: datetime | None = None) -> None:
    operation.state, operation.note, operation.ended_at = state, note[:500], now


def _end(operation: Operation, now: datetime) -> None:
    operation.state, operation.ended_at = OperationState.DONE, now
