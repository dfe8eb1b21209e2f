"""Two people say something of the same new group at once: one of them is told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from jobs import triage
from jobs.errors import InvalidValue
from jobs.models import Triage

pytestmark = [pytest.mark.concurrency, pytest.mark.django_db(transaction=True)]


def test_of_two_who_saw_nothing_said_one_is_told() -> None:
    start = Barrier(2)

    def say(state: str) -> str:
        try:
            start.wait(10)
            triage.mark("00000000000000aa", state, by=state, seen=None)
        except InvalidValue as error:
            return error.message
        finally:
            connection.close()
        return state

    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(say, ["known", "ignored"]))
    (kept,) = Triage.objects.values_list("state", flat=True)
    assert kept in told
    (refused,) = [each for each in told if each != kept]
    assert refused == f"{kept} has said meanwhile that it is {kept}: look again"
