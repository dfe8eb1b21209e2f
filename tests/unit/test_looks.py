"""When a claimer looks, how far back, and what it takes in."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.clock import DatabaseClock
from jobs.leases import looks as module
from jobs.leases.looks import BACK, COMING, EVERY, HOP, PATIENCE, SHARE, SPARE, SWEEP, WIDE, Looks
from tests.unit.looking import PAIR, TIME, Server, look_after, looks_of, ring_of
from tests.unit.test_ring import at, mark, ready


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", TIME)


def test_a_fresh_start_hops_and_looks_widely() -> None:
    server = Server()
    server.finds("hop", -500, 7)
    looks = looks_of(server, "q", "r")
    assert server.names == ["hop", "look"]
    assert server.last("hop") == {"queues": ["q", "r"], "types": ["test.noop"]}
    assert server.last("look") == {
        "queues": ["q", "r"], "types": ["test.noop"], "suspects": False, "since": at(0) - SPARE, "coming": COMING,
    }  # fmt: skip
    assert ring_of(looks).marks == {PAIR: mark(-500, 6)}


def test_a_process_for_suspects_looks_for_them_alone() -> None:
    server = Server()
    looks = Looks(["q"], [], suspects=True, clock=DatabaseClock())
    looks.look(server.connection)
    assert server.last("look")["suspects"] is True


def test_a_look_is_due_in_a_moment_and_can_wait_for_what_is_known() -> None:
    server = Server()
    looks = looks_of(server)
    assert not looks.due(busy=False)
    server.passes(EVERY + 0.001)
    assert looks.due(busy=False)
    assert not looks.due(busy=True)
    server.passes(PATIENCE)
    assert looks.due(busy=True)


def test_a_narrow_look_reaches_back_a_moment_before_the_last_one() -> None:
    server = Server()
    looks = looks_of(server)
    look_after(looks, server, WIDE)
    assert look_after(looks, server, 0.3) == ["look"]
    assert server.last("look")["since"] == at(1.0) - BACK
    look_after(looks, server, 0.2)
    assert server.last("look")["since"] == at(1.3) - BACK


def test_a_wide_look_comes_each_second() -> None:
    server = Server()
    looks = looks_of(server)
    wide = []
    for _ in range(10):
        look_after(looks, server, 0.4)
        wide.append(server.last("look")["since"] == at(0) - SPARE)
        server.xmin = 0  # somebody is open all the time
    assert wide == [True, False, False, True, False, False, True, False, False, True]


def test_nobody_sleeps_through_the_wide_look_that_follows_a_narrow_one() -> None:
    server = Server()
    looks = looks_of(server)
    assert looks.wide_in() == float("inf")
    assert look_after(looks, server, 0.1) == ["look"]
    assert looks.wide_in() == float("inf"), "the first look after a hop is wide"
    look_after(looks, server, 0.4)
    assert looks.wide_in() == pytest.approx(WIDE - 0.4)
    server.passes(2.0)
    assert looks.wide_in() == 0.0


def test_a_hint_makes_the_next_look_due_even_while_one_is_made() -> None:
    server = Server()
    looks = looks_of(server)
    looks.forget()
    assert looks.due(busy=True)
    server.meanwhile = looks.forget
    look_after(looks, server, 0.1)
    assert looks.due(busy=True)
    server.meanwhile = None
    look_after(looks, server, 0.1)
    assert not looks.due(busy=True)


def test_a_look_that_takes_long_is_made_seldom() -> None:
    server = Server()
    looks = looks_of(server)
    server.takes = 0.5
    look_after(looks, server, 0.1)
    server.passes(SHARE * 0.5 - 0.1)
    assert not looks.due(busy=False)
    server.passes(0.2)
    assert looks.due(busy=False)


def test_a_wide_look_that_takes_long_is_made_seldom() -> None:
    server = Server()
    looks = looks_of(server)
    server.takes = 0.5
    look_after(looks, server, 0.1)
    server.takes, server.xmin = 0.0, 0
    look_after(looks, server, SHARE * 0.5 - 1.0)
    assert server.last("look")["since"] == at(0.6 - 0.5) - BACK
    look_after(looks, server, 1.0)
    assert server.last("look")["since"] == at(0) - SPARE


def test_a_hop_comes_once_a_minute_and_after_a_lost_connection() -> None:
    server = Server()
    looks = looks_of(server)
    assert look_after(looks, server, SWEEP) == ["look", "hop"], "the first sweep"
    assert look_after(looks, server, HOP - SWEEP - 1) == ["look"]
    assert look_after(looks, server, 1.5) == ["hop", "look"]
    assert look_after(looks, server, HOP - 1) == ["look"]
    looks.restart()
    assert looks.due(busy=True)
    assert look_after(looks, server, 0.0) == ["hop", "look"]


def test_a_hop_that_takes_long_is_made_seldom() -> None:
    server = Server()
    server.takes = 10.0
    looks = looks_of(server)  # 20 seconds: a hop and a look
    server.takes = 0.0
    assert look_after(looks, server, SHARE * 10 - 21) == ["look", "hop"]
    assert look_after(looks, server, 0.5) == ["look"]
    assert look_after(looks, server, 1.0) == ["hop", "look"]


def test_the_lines_of_queues_are_kept_apart() -> None:
    server = Server()
    looks = looks_of(server, "q", "r")
    server.finds("look", -0.1, pair=(1, 5), queue="q")
    server.finds("look", -0.2, pair=(2, 6), queue="r")
    look_after(looks, server, 0.1)
    assert {queue: ready(line.ring) for queue, line in looks.lines.items()} == {"q": [(1, 5)], "r": [(2, 6)]}


def test_what_is_told_of_a_tenant_is_learnt() -> None:
    server = Server()
    looks = looks_of(server)
    server.finds("look", -0.1, limited=True)
    look_after(looks, server, 0.1)
    assert ring_of(looks).limited == {1}


def test_the_clock_is_set_by_each_look() -> None:
    server = Server()
    looks = looks_of(server)
    server.passes(1000.0)
    looks.look(server.connection)
    assert looks.clock.now() - server.clock < timedelta(seconds=30)
    assert looks.clock.now() >= server.clock


def test_an_unknown_type_counts_only_when_it_is_due() -> None:
    server = Server()
    looks = looks_of(server)
    server.finds("look", 3, flag=True)
    look_after(looks, server, 0.1)
    assert not looks.lines["q"].unknown
    server.finds("look", -0.1, flag=True)
    server.finds("look", -0.1, pair=(2, 0))
    look_after(looks, server, 0.1)
    assert looks.lines["q"].unknown


def test_strangers_are_remembered_until_the_next_hop() -> None:
    server = Server()
    looks = looks_of(server)
    line = looks.lines["q"]
    assert not line.strangers
    server.finds("look", -0.1, flag=True)
    look_after(looks, server, 0.1)
    server.answers.clear()
    look_after(looks, server, 0.1)
    assert line.strangers
    look_after(looks, server, HOP)
    assert not line.strangers
    server.answers["hop"] = [("q", None, None, None, None, True, 1, False)]
    look_after(looks, server, HOP)
    assert line.strangers
    assert line.unknown


def test_a_leap_goes_to_the_next_that_is_known_and_is_no_look_at_other_queues() -> None:
    server = Server()
    looks = looks_of(server, "q", "r")
    line, other = looks.lines["q"], (2, 0)
    for pair in (PAIR, other):
        line.ring.see(pair, 1, False, at(-500))
    look_after(looks, server, WIDE)
    server.finds("look", -3)
    server.passes(0.2)
    looks.leap(server.connection, line, [PAIR, other])
    assert server.last("look")["queues"] == ["q"]
    assert server.last("look")["since"] < at(-500)
    assert line.ring.marks == {PAIR: mark(-3), other: mark(WIDE + 0.2)}
    assert ready(line.ring) == [PAIR]
    look_after(looks, server, 0.1)
    assert server.last("look")["since"] == at(WIDE) - BACK


def test_a_leap_that_takes_long_is_made_seldom() -> None:
    server = Server()
    looks = looks_of(server)
    line = looks.lines["q"]
    line.ring.see(PAIR, 1, False, at(-500))
    server.takes = 1.0
    for seconds, made in ((0.0, True), (18.0, False), (2.0, True)):
        server.passes(seconds)
        before = len(server.sent)
        looks.leap(server.connection, line, [PAIR])
        assert (len(server.sent) > before) == made
