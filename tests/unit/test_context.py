from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from jobs import context
from jobs.context import Context, StopFlag
from jobs.errors import Cancelled
from jobs.ids import new_id

NOW = datetime(2026, 12, 1, tzinfo=UTC)
LONG = 60.0


def waiting(flag: StopFlag, number: int) -> tuple[list[threading.Thread], list[bool]]:
    """Threads that wait for the flag, each past the point at which it may still return by itself."""
    answers: list[bool] = []
    threads = [
        threading.Thread(target=lambda: answers.append(flag.wait(LONG)), daemon=True) for _ in range(number)
    ]
    for thread in threads:
        thread.start()
    return threads, answers


def test_a_body_is_told_to_stop() -> None:
    job_id = new_id(NOW)
    told = Context(job_id, "test.noop", 1, 20, "acme", "q")
    told.heartbeat()
    assert (told.cancelled, told.idempotency_key, told.due_at) == (False, str(job_id), NOW)
    told.stop.set()
    assert told.cancelled
    with pytest.raises(Cancelled):
        told.heartbeat()


def test_each_attempt_has_a_flag_of_its_own() -> None:
    one, two = (Context(new_id(NOW), "test.noop", 1, 20, "acme", "q") for _ in range(2))
    one.stop.set()
    assert (one.cancelled, two.cancelled) == (True, False)


def test_a_flag_that_is_set_is_not_waited_for() -> None:
    flag = StopFlag()
    flag.set()
    assert flag.is_set()
    assert flag.wait()
    flag.set()
    assert flag.wait(LONG)


def test_nobody_calls_and_the_time_runs_out() -> None:
    flag = StopFlag()
    assert flag.wait(0) is False
    assert flag.wait(0.001) is False
    assert not flag.is_set()


def test_all_that_wait_are_woken() -> None:
    """Though the first of them makes what they wait for."""
    flag = StopFlag()
    threads, answers = waiting(flag, 4)
    flag.set()
    for thread in threads:
        thread.join(LONG)
    assert answers == [True] * 4


def test_a_flag_that_was_waited_for_in_vain_wakes_the_next_one() -> None:
    flag = StopFlag()
    assert not flag.wait(0)
    threads, answers = waiting(flag, 1)
    flag.set()
    threads[0].join(LONG)
    assert answers == [True]


@pytest.mark.parametrize("when", ["while it is made", "once it is there", "as the wait begins"])
def test_a_flag_that_is_set_while_a_wait_begins_is_not_missed(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag = StopFlag()

    class Meanwhile(threading.Event):
        """Somebody else's set() falls into the wait."""

        def __init__(self) -> None:
            super().__init__()
            if when == "while it is made":
                flag.set()

        def wait(self, timeout: float | None = None) -> bool:
            if when == "as the wait begins":
                flag.set()
            return super().wait(0)

    class Lock:
        def __enter__(self) -> None: ...

        def __exit__(self, *args: Any) -> None:
            if when == "once it is there":
                flag.set()

    monkeypatch.setattr(context, "Event", Meanwhile)
    monkeypatch.setattr(StopFlag, "_lock", Lock())
    assert flag.wait(LONG)


def test_waits_and_sets_in_any_order_end() -> None:
    for _ in range(200):
        flag = StopFlag()
        threads, answers = waiting(flag, 2)
        setter = threading.Thread(target=flag.set)
        setter.start()
        for thread in [*threads, setter]:
            thread.join(LONG)
        assert answers == [True, True]
