"""At most AT_ONCE of one user's pages are read at once: who opens twenty of them at a slow database keeps no other
operator waiting. What holds a place is a lock of the transaction that reads: it goes with the request, however that ends,
and past a transaction pooler."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import blake2b
from typing import Any, TypeVar

from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse

from jobs.search.guard import TooSlow, bounded

AT_ONCE = 2
PATIENCE = timedelta(milliseconds=500)
"""A page waits so long for its place: three tabs opened in a row are no error."""
RETRY_AFTER = 2
R = TypeVar("R", bound=HttpResponse)


class NoPlace(Exception):
    """As many pages of this user as may be are being read."""


@contextmanager
def place(request: HttpRequest, using: str = "default") -> Iterator[None]:
    """One of the user's places while this lasts; NoPlace, and the response will be a 429."""
    keys = [key(request.user, n) for n in range(AT_ONCE)]
    with transaction.atomic(using):
        if not _take(keys, using):
            request.__dict__["_jobs_no_place"] = True
            raise NoPlace
        yield


def answered(request: HttpRequest, response: R) -> R:
    """The response with the status that tells a client to come back later, if there was no place."""
    if request.__dict__.get("_jobs_no_place"):
        response.status_code = 429
        response["Retry-After"] = str(RETRY_AFTER)
    return response


def key(user: Any, n: int) -> int:
    """Of the n-th place of this user, as an advisory lock."""
    digest = blake2b(f"jobs console {user.pk} {n}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def _take(keys: list[int], using: str) -> bool:
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM unnest(%s::bigint[]) place(key) WHERE pg_try_advisory_xact_lock(key))",
            [keys],
        )
        if cursor.fetchone()[0]:
            return True
    try:
        with bounded(using, PATIENCE), connections[using].cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [secrets.choice(keys)])
    except TooSlow:
        return False
    return True
