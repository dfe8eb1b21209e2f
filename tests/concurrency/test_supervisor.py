"""A supervisor on a system that has no room for another process, and with many children to bury."""

from __future__ import annotations

import errno
import logging
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dispatch import supervisor as module
from dispatch.children import ChildSettings
from dispatch.shutdown import Shutdown
from dispatch.supervisor import START_AGAIN, CannotStart, Supervisor
from jobs.clock import boottime
from jobs.models import Process, ProcessKind
from tests.racing import Connection

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]


@pytest.fixture
def mine() -> Supervisor:
    settings = ChildSettings(queues=("q",), types=("test.noop",), threads=1, using="default", listen=False)
    return Supervisor(settings, 2, Shutdown())


def test_fk_03_without_room_for_a_process_it_goes_on_and_tries_again(
    mine: Supervisor,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    now, tries = 1e6, 0

    def popen(*args: Any, **kwargs: Any) -> Any:
        nonlocal tries
        tries += 1
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("dispatch.children.subprocess.Popen", popen)
    monkeypatch.setattr(module, "boottime", lambda: now)
    before = [*Path("/proc/self/fd").iterdir()]
    with caplog.at_level(logging.ERROR):
        mine._keep(connection)
        mine._keep(connection)
        assert (tries, mine.children) == (1, [])
        now += START_AGAIN
        mine._keep(connection)
    assert tries == 2
    assert [*Path("/proc/self/fd").iterdir()] == before
    assert not Process.objects.filter(kind=ProcessKind.WORKER, ended_at=None).exists()
    assert [record.message for record in caplog.records] == ["no worker can be started"] * 2


def test_le_05_many_burials_hold_up_no_renewal(
    mine: Supervisor, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, renewed = 1e6, list[float]()

    class Dead:
        process_id = 0

        def bury(self, connection: Connection, *, crashed: bool) -> None:
            nonlocal now
            now += 9.0

    monkeypatch.setattr(module, "boottime", lambda: now)

    def renew(*args: Any) -> set[int]:
        renewed.append(now)
        return set()

    monkeypatch.setattr("dispatch.supervisor.renew", renew)
    mine._renew(connection)
    dead: Any = [(Dead(), False)] * 6
    mine.dead = dead
    mine._bury(connection)
    assert max(b - a for a, b in pairwise(renewed)) < 30.0 / 3 + 9.0 + 1.0
    assert len(renewed) >= 4


def test_db_03_children_that_are_replaced_before_they_are_ready_are_no_false_starts(
    mine: Supervisor,
) -> None:
    """A slow machine, or a database that comes and goes, takes their leases while they start."""

    class Ended:
        process_id, ready, alive, draining_since = 0, False, False, 1.0

        class process:  # noqa: N801
            returncode = 0

    for _ in range(module.MAX_FALSE_STARTS):
        child: Any = Ended()
        mine.children.append(child)
        mine._ended(child)
    assert (mine._false_starts, len(mine.dead)) == (0, module.MAX_FALSE_STARTS)
    Ended.draining_since = None  # type: ignore[assignment]
    for _ in range(module.MAX_FALSE_STARTS - 1):
        child = Ended()
        mine.children.append(child)
        mine._ended(child)
    assert mine._false_starts == module.MAX_FALSE_STARTS - 1


def test_fk_03_those_that_run_go_on_when_another_cannot_start(mine: Supervisor) -> None:
    """Without room for its threads, or while its files are being replaced."""
    now = boottime()

    class Running:
        process_id, ready, alive, draining_since = 1, True, True, None

        def bury(self, connection: Connection, *, crashed: bool) -> None:
            """Nothing is held."""

    class Ended(Running):
        ready = alive = False

        class process:  # noqa: N801
            returncode = 1

    running: Any = Running()
    mine.children.append(running)
    for _ in range(2 * module.MAX_FALSE_STARTS):
        child: Any = Ended()
        mine.children.append(child)
        mine._ended(child)
        assert mine._start_at >= now + START_AGAIN
    mine.children.remove(running)
    child = Ended()
    mine.children.append(child)
    with pytest.raises(CannotStart):
        mine._ended(child)
