"""Whom a claimer passes over: who may run again is waited for no more."""

from __future__ import annotations

import pytest

from jobs.leases import passed as module
from jobs.leases.passed import LONGEST_WAIT, Passed
from jobs.leases.ring import Ring


class Time:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


def test_who_may_run_again_is_waited_for_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    ring, time = Ring(), Time()
    monkeypatch.setattr(module, "time", time)
    passed = Passed(ring)
    passed.at_limit(1, LONGEST_WAIT)
    assert passed.later
    time.now += LONGEST_WAIT
    passed.bring_back(lambda tenants: [(tenant, None) for tenant in tenants])
    assert not passed
