from __future__ import annotations

from typing import Any

import psycopg
import pytest

from jobs.states import JobState
from tests.factories import job_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("state", list(JobState))
def test_a_job_can_be_in_every_state_and_says_so(
    state: JobState, connection: psycopg.Connection[Any]
) -> None:
    assert job_in(state, connection).state == state
