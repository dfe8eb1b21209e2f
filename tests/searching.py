"""How long Hypothesis searches for an order of events, or for values, that break a rule."""

from __future__ import annotations

from tests import server


def examples(most: int) -> int:
    """All of them on the first server. What is searched for is a mistake of ours, whatever server runs the statements: what
    another one makes of each statement is seen by the tests of that statement."""
    return most if server.VERSION == "18" else most // 4
