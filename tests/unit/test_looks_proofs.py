"""How a look knows that nobody can commit late any more, and what a sweep brings back."""

from __future__ import annotations

import pytest

from jobs import arrays
from jobs.leases import looks as module
from jobs.leases.looks import HOP, SPARE, SWEEP, WIDE, Looks
from tests.unit.looking import PAIR, TIME, Server, look_after, looks_of, ring_of
from tests.unit.test_ring import at, mark, ready


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", TIME)


def since(server: Server) -> float:
    """How far the last look reached back, before its spare second."""
    return float((server.last("look")["since"] + SPARE - at(0)).total_seconds())


def test_wide_looks_reach_back_to_the_start_while_who_was_open_then_is_open() -> None:
    server = Server()
    server.xmin = server.next_xid - 1
    looks = looks_of(server)
    for _ in range(5):
        server.next_xid += 10
        look_after(looks, server, WIDE)
        assert since(server) == 0


def test_wide_looks_reach_back_to_the_last_moment_after_which_all_has_ended() -> None:
    server = Server()
    server.xmin = server.next_xid - 1
    looks = looks_of(server)
    look_after(looks, server, WIDE)  # at 1: 99 is open
    server.xmin, server.next_xid = 100, 105
    look_after(
        looks, server, WIDE
    )  # at 2: all that was open at 0 has ended; since then 100 to 104 have begun
    assert since(server) == 0
    look_after(looks, server, WIDE)  # at 3
    assert since(server) == 0, "proven was the moment of the first look"
    server.xmin = 104
    look_after(looks, server, WIDE)  # at 4: 104 is open
    assert since(server) == 0
    server.xmin = 105
    look_after(looks, server, WIDE)  # at 5
    assert since(server) == 0, "this look is the proof: it must see what they left"
    look_after(looks, server, WIDE)
    assert since(server) == 2, "that of the look which began the second proof"


def test_a_proof_waits_for_those_that_were_open_when_it_began_alone() -> None:
    """A new long transaction does not hold up the proof that began before it."""
    server = Server()
    looks = looks_of(server)
    server.next_xid = 200  # 100 is open from now on
    look_after(looks, server, WIDE)
    look_after(looks, server, WIDE)
    assert since(server) == 0
    look_after(looks, server, WIDE)
    assert since(server) == 0, "the second proof began at 1 and waits for 100"


def test_a_later_hop_proves_nothing() -> None:
    server = Server()
    server.xmin = server.next_xid - 1
    looks = looks_of(server)
    assert look_after(looks, server, HOP) == ["hop", "look"]
    assert since(server) == 0
    server.xmin, server.next_xid = 100, 110
    look_after(looks, server, WIDE)
    look_after(looks, server, WIDE)
    assert since(server) == 0, "proven was the moment of the start"


def test_what_was_learnt_before_a_look_is_proven_with_it() -> None:
    server = Server()
    looks = looks_of(server)
    learnt = looks.number
    look_after(looks, server, WIDE)
    assert not learnt < looks.proven, "who was open when it was learnt may still be"
    look_after(looks, server, WIDE)
    assert learnt < looks.proven


def test_a_start_is_hopped_again_until_all_that_was_open_then_has_ended() -> None:
    server = Server()
    server.xmin = server.next_xid - 1
    looks = looks_of(server)
    server.finds("hop", -100, 7)  # committed late, by a transaction that was open for long
    assert look_after(looks, server, SWEEP) == ["look", "hop"]
    assert ring_of(looks).marks == {PAIR: mark(-100, 6)}
    assert look_after(looks, server, SWEEP) == ["look", "hop"]
    server.xmin = 100
    assert look_after(looks, server, SWEEP) == ["look", "hop"]
    assert look_after(looks, server, SWEEP) == ["look"], "nothing was touched"


def swept(*, touched: bool = True) -> tuple[Server, Looks]:
    """Two looks after the start. What was touched was passed from -100 on up to -50."""
    server = Server()
    server.finds("hop", -100, 7)
    looks = looks_of(server)
    server.answers.clear()
    if touched:
        ready(ring_of(looks))
        ring_of(looks).advance(PAIR, mark(-50, 5))
    assert look_after(looks, server, SWEEP) == ["look", "hop"]
    return server, looks


def test_a_sweep_probes_what_was_touched_from_its_floor() -> None:
    server, looks = swept()
    look_after(looks, server, SWEEP)
    assert server.names[-1] == "sweep"
    sent = server.last("sweep")
    assert [sent[name].data[-4:] for name in ("tenants", "priorities")] == [b"\0\0\0\1", b"\0\0\0\0"]
    assert sent["run_ats"].data == arrays.timestamps([at(-100)]).data
    assert sent["job_ids"].data == arrays.uuids([mark(0, 6)[1]]).data
    assert sent["pair_queues"].data == arrays.texts(["q"]).data


def test_what_was_not_touched_is_not_swept() -> None:
    server, looks = swept(touched=False)
    assert look_after(looks, server, SWEEP) == ["look"]


def test_a_sweep_takes_a_mark_back_to_what_was_left_behind_it() -> None:
    server, looks = swept()
    server.finds("sweep", -60, 3)
    look_after(looks, server, SWEEP)
    assert ring_of(looks).marks == {PAIR: mark(-60, 2)}


def test_what_was_touched_is_swept_until_all_that_was_open_then_has_ended() -> None:
    """The sweep that proves it is the last: by then the marks of the sweep before are its floors."""
    server, looks = swept()
    server.xmin, server.next_xid = 99, 110
    for _ in range(3):
        assert look_after(looks, server, SWEEP) == ["look", "sweep"]
        assert ring_of(looks).floors == {PAIR: mark(-100, 6)}
    server.xmin = 110
    assert look_after(looks, server, SWEEP) == ["look", "sweep"]
    assert ring_of(looks).floors == {PAIR: mark(-50, 5)}
    ring_of(looks).exhausted(PAIR)
    assert look_after(looks, server, SWEEP) == ["look"]


def test_what_is_touched_after_a_sweep_waits_for_the_proof_after_next() -> None:
    server, looks = swept()
    ring = ring_of(looks)
    server.next_xid = 110
    ready(ring)
    ring.advance(PAIR, mark(-20))
    look_after(looks, server, SWEEP)  # proves -50, and copies -20
    assert ring.floors == {PAIR: mark(-50, 5)}
    server.xmin = 109
    look_after(looks, server, SWEEP)
    assert ring.floors == {PAIR: mark(-50, 5)}
    server.xmin = 110
    look_after(looks, server, SWEEP)
    assert ring.floors == {PAIR: mark(-20)}


def test_sweeps_come_every_two_seconds_and_seldom_when_they_take_long() -> None:
    server, looks = swept()
    assert look_after(looks, server, SWEEP - 0.1) == ["look"]
    server.takes = 1.0
    assert look_after(looks, server, 0.2) == ["look", "sweep"]
    server.takes = 0.0
    ready(ring_of(looks))
    assert look_after(looks, server, 18.0) == ["look"]
    assert look_after(looks, server, 2.0) == ["look", "sweep"]
