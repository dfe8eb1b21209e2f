"""What each guard of a stop flag prevents: a check that fails without it."""

from __future__ import annotations

import pytest

from jobs.context import Context, StopFlag
from tests.mutating import Mutants
from tests.unit import test_context as context


def all_wait_for_the_same() -> None:
    flag = StopFlag()
    flag.wait(0)
    event = flag._event
    flag.wait(0)
    assert flag._event is event


def who_waits_is_woken() -> None:
    flag = StopFlag()
    flag.wait(0)
    flag.set()
    assert flag._event
    assert flag._event.is_set()


def a_flag_is_not_missed_while_a_wait_begins() -> None:
    for when in ("while it is made", "once it is there", "as the wait begins"):
        with pytest.MonkeyPatch.context() as patch:
            context.test_a_flag_that_is_set_while_a_wait_begins_is_not_missed(when, patch)


MUTANTS: Mutants = {
    context.test_a_body_is_told_to_stop: [
        (StopFlag.set, "self._set = True", "pass"),
        (Context.heartbeat, "if self.stop.is_set():", "if False:"),
    ],
    all_wait_for_the_same: [(StopFlag.wait, "if self._event is None:", "if True:")],
    who_waits_is_woken: [(StopFlag.set, "self._event.set()", "pass")],
    a_flag_is_not_missed_while_a_wait_begins: [(StopFlag.wait, "if self._set:", "if False:")],
}
