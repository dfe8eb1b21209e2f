"""What is coming: a process wakes for it without asking again."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from jobs.ids import new_id
from jobs.leases import looks as module
from jobs.leases.looks import COMING, Line, Looks
from jobs.leases.ring import Pair
from jobs.results import Claim, Held
from tests.unit.looking import PAIR, TIME, Server, look_after, looks_of, ring_of
from tests.unit.test_ring import at, mark, ready


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", TIME)


def coming(*seconds: float, ahead: float = 0.0, flag: bool = False, limited: bool = False) -> Looks:
    """Looks that know of entries which are due then."""
    server = Server()
    looks = looks_of(server)
    line_of(looks).ahead = timedelta(seconds=ahead)
    for each in seconds:
        server.finds("look", each, flag=flag, limited=limited)
    look_after(looks, server, 0.1)
    return looks


def line_of(looks: Looks) -> Line:
    return looks.lines["q"]


def test_what_is_coming_takes_a_turn_when_its_time_has_come() -> None:
    line = line_of(coming(3, 1, 2))
    assert line.next_at == line.due_at == at(1)
    assert not line.arrive(at(0.9))
    assert ready(line.ring) == []
    assert line.arrive(at(2))
    assert ready(line.ring) == [PAIR]
    assert line.ring.marks[PAIR] == mark(1)
    assert line.next_at == at(3)
    assert line.arrive(at(3))
    assert not line.arrive(at(9))
    assert not line.coming


def claim_of(pair: Pair, seconds: float) -> Claim:
    held = Held(new_id(at(seconds)), UUID(int=1), 1, "test.noop", 1, 20, 0)
    return Claim(held, pair[0], "acme", "q", pair[1], at(seconds), None, False, "{}")


def test_nobody_wakes_for_what_was_claimed_ahead() -> None:
    line = line_of(coming(3, 4, ahead=0.5))
    line.took([claim_of((1, 7), 3), claim_of(PAIR, 2)])
    assert line.due_at == at(3)
    line.took([claim_of(PAIR, 3)])
    assert line.due_at == at(4)


def test_a_process_wakes_for_what_could_not_be_claimed_ahead_with_it() -> None:
    """Another entry of the same pair and time must start at once."""
    server = Server()
    looks = looks_of(server)
    line_of(looks).ahead = timedelta(seconds=0.5)
    server.finds("look", 3)
    server.finds("look", 3, flag=True)
    look_after(looks, server, 0.1)
    line_of(looks).took([claim_of(PAIR, 3)])
    assert line_of(looks).next_at == at(3)


def test_each_look_tells_anew_what_is_coming() -> None:
    server = Server()
    looks = looks_of(server)
    server.finds("look", 3)
    look_after(looks, server, 0.1)
    assert line_of(looks).next_at == at(3)
    server.answers.clear()
    look_after(looks, server, 0.1)
    assert (line_of(looks).next_at, line_of(looks).due_at) == (None, None)


def test_what_is_due_takes_its_turn_at_once_and_is_not_coming() -> None:
    looks = coming(0.1)
    assert line_of(looks).next_at is None
    assert ready(ring_of(looks)) == [PAIR]


def test_an_entry_may_be_claimed_a_moment_ahead() -> None:
    line = line_of(coming(3, ahead=0.5))
    assert (line.next_at, line.due_at) == (at(2.5), at(3))
    assert line.arrive(at(2.5))
    assert line.ring.marks[PAIR] == mark(3)


def test_what_the_same_claim_reaches_is_let_in_with_it() -> None:
    line = line_of(coming(3, 3.3, 3.5, ahead=0.5))
    assert line.arrive(at(2.5))
    assert [run_at for *_, run_at in line.coming] == [at(3.5)], "a claim reaches it, if all clocks agree"


def test_what_must_start_at_once_is_not_let_in_with_others() -> None:
    server = Server()
    looks = looks_of(server)
    line_of(looks).ahead = timedelta(seconds=0.5)
    server.finds("look", 3)
    server.finds("look", 2.8, flag=True)
    look_after(looks, server, 0.1)
    line = line_of(looks)
    assert line.arrive(at(2.5))
    assert (line.next_at, len(line.coming)) == (at(2.8), 1)
    assert line.arrive(at(2.8))
    assert not line.coming


@pytest.mark.parametrize(("flag", "limited"), [(True, False), (False, True)])
def test_what_must_start_at_once_is_not_claimed_ahead(flag: bool, limited: bool) -> None:
    assert line_of(coming(3, ahead=0.5, flag=flag, limited=limited)).next_at == at(3)


def test_there_may_be_more_than_a_look_tells() -> None:
    assert not line_of(coming(*range(1, COMING))).more
    assert line_of(coming(*range(1, COMING + 1))).more


def test_behind_all_that_is_known_a_process_wakes_to_look_for_more() -> None:
    line = line_of(coming(*range(1, COMING + 1), ahead=0.5))
    assert (line.next_at, line.due_at) == (at(0.5), at(1))
    line.took([claim_of(PAIR, seconds) for seconds in range(1, COMING + 1)])
    assert (line.next_at, line.due_at, line.coming) == (at(COMING - 0.5), at(COMING), [])
    few = line_of(coming(1, 2))
    few.took([claim_of(PAIR, 1), claim_of(PAIR, 2)])
    assert few.next_at == at(1), "claimed at its own time: it may be another that must start at once"


def test_many_at_one_moment_are_a_crowd() -> None:
    assert line_of(coming(*[3] * COMING)).crowd
    assert not line_of(coming(*[3] * (COMING - 1))).crowd
    assert not line_of(coming(*range(1, COMING + 1))).crowd
    crowd = line_of(coming(*[3] * COMING))
    crowd.arrive(at(3))
    assert not crowd.crowd
