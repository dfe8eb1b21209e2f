"""Processes that a body forks from a worker's: each ends when it is told to, as in a program that knows no signals."""

from __future__ import annotations

import os
import signal
import threading

OURS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The signals that a worker's process does not take as usual."""

_forking = threading.local()


def die_as_usual() -> None:
    """From now on. Signals are held back while a fork is under way: the copy would still have our handler, Python forgets
    there what has come before the fork's end, and `multiprocessing`'s `terminate()`, which comes once, would be waited
    on for ever."""
    os.register_at_fork(before=_hold_back, after_in_parent=_let_through, after_in_child=_begin)


def _hold_back() -> None:
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, OURS)


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _begin() -> None:
    for number in OURS:
        signal.signal(number, signal.SIG_DFL)
    _let_through()
