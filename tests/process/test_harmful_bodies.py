"""What a body does to its process: the worker's own loops go on, or the process is replaced."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.models import Outcome
from tests.commands import Commands, Ledger
from tests.factories import schedule
from tests.racing import assert_sound, due_job
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("transactional_db")]
SOON = timedelta(seconds=0.3)


def test_clocks_that_a_body_has_stopped_stop_no_loop_of_ours(commands: Commands, ledger: Ledger) -> None:
    worker = commands.worker(threads=2)
    children = worker.children
    spoilt = due_job("test.harms", {"how": "clocks"})
    wait_until(Outcome.objects.filter(pk=spoilt.pk).exists)
    slow = {"ledger": str(ledger), "seconds": 0.05}
    after = [due_job("test.async", slow) for _ in range(3)]
    after += [due_job("test.flaky"), schedule(delay=SOON), schedule("test.async", slow, delay=SOON)]
    wait_until(lambda: Outcome.objects.filter(state="completed").count() == 1 + len(after))
    assert worker.children == children
    assert not worker.errors
    assert_sound()


@pytest.mark.parametrize("how", ["settler", "files"])
def test_bx_03_a_process_that_cannot_go_on_is_replaced_and_its_jobs_end(how: str, commands: Commands) -> None:
    """It would look healthy, keep its leases and write no result."""
    worker = commands.worker(threads=2)
    children = worker.children
    spoilt = due_job("test.harms", {"how": how})
    wait_until(Outcome.objects.filter(pk=spoilt.pk).exists)
    after = [due_job("test.echo", {"value": n}) for n in range(20)]
    wait_until(lambda: Outcome.objects.filter(state="completed").count() == 1 + len(after))
    assert how == "files" or worker.children != children
    assert_sound()
