"""Years later: numbers that no longer fit into 32 bits, or into a float; threads that are not the first."""

from __future__ import annotations

import signal
from datetime import timedelta
from uuid import UUID

import pytest

from jobs.leases import rescue
from jobs.models import Job, Process, Tenant
from jobs.results import Claim, Completed
from jobs.states import JobState
from tests.factories import failed, finish, process, schedule, take
from tests.racing import Connection, assert_sound, beside, due_job

pytestmark = [pytest.mark.concurrency, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("number", [2**31 - 2, 2**53 - 1], ids=["32 bits", "53 bits"])
def test_ld_01_every_verb_works_when_its_numbers_are_large(connection: Connection, number: int) -> None:
    numbers = {"jobs_claim_no": number}
    for table in ("jobs_tenant", "jobs_process"):
        row = connection.execute("SELECT pg_get_serial_sequence(%s, 'id')", [table]).fetchone()
        assert row
        numbers[row[0]] = number
    before = {name: connection.execute(f"SELECT last_value FROM {name}").fetchone() for name in numbers}
    try:
        for name in numbers:
            connection.execute("SELECT setval(%s, %s)", [name, number])
        jobs = [due_job(tenant=f"tenant {n}") for n in range(4)]
        Tenant.objects.filter(slug="tenant 1").update(max_running=1)
        mine, gone = process(connection), process(connection, lease=timedelta())
        held: dict[UUID, Claim] = {}
        while len(held) < len(jobs):  # a limit is learnt by the first claim and locked for by the second
            held |= {each.held.job_id: each for each in take(connection, jobs[0].queue, mine)}
        finish(connection, held[jobs[0].id], Completed())
        finish(connection, held[jobs[1].id], failed(final=True))
        assert jobs[1].retry().changed == 1
        assert jobs[2].cancel().requested == 1
        assert rescue(connection).fates == {}
        assert min(mine, gone) > number
        assert Process.objects.filter(pk=mine).exists()
        assert jobs[0].state == JobState.COMPLETED
        assert_sound()
    finally:
        for name, row in before.items():
            assert row
            connection.execute("SELECT setval(%s, %s)", [name, row[0]])


def test_sg_01_every_verb_works_in_a_thread_and_leaves_the_signals_alone(connection: Connection) -> None:
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]

    def act() -> list[int]:
        job = schedule(delay=timedelta(hours=1))
        return [job.reschedule(job.due_at).changed, job.cancel().changed, job.retry().changed]

    assert beside(act).result(60) == [1, 1, 1]
    assert Job.objects.count() == 1
    assert [signal.getsignal(number) for number in signal.valid_signals()] == handlers
