"""What becomes of a body that did not do what its job was for, and of results that nobody can read."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import threading
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from dispatch.executor import AsyncLoop, execute
from jobs.context import Context
from jobs.registry import job_type, registry
from jobs.results import Completed, Failed, Result
from jobs.retry import Backoff


def run(
    handler: Callable[..., Any],
    payload: str = "{}",
    hard: float | None = None,
    loop: AsyncLoop | None = None,
) -> Result:
    made = job_type("test.here", backoff=Backoff.constant(timedelta()))(handler)
    registry.remove("test.here")
    context = Context(uuid4(), "test.here", 1, 3, "default", "test.here")
    return execute(made, context, payload, loop or AsyncLoop(), hard)


async def body(context: Any) -> str:
    return "ran"


def wrapped(context: Any) -> Any:
    return body(context)


async def twice(context: Any) -> Any:
    return body(context)


def generates(context: Any) -> Any:
    return (n for n in range(3))


def later(context: Any) -> Any:
    async def many() -> Any:
        yield 1

    return many()


@pytest.mark.parametrize("handler", [wrapped, functools.wraps(body)(wrapped), twice, generates, later])
def test_bx_01_a_body_that_was_only_made_and_not_run_is_a_failure(handler: Callable[..., Any]) -> None:
    result = run(handler)
    assert isinstance(result, Failed)
    assert "that nobody has run" in result.error.message


def test_an_async_body_runs() -> None:
    assert run(body) == Completed('"ran"')


class Mute:
    def __repr__(self) -> str:
        raise SystemError("no")


@pytest.mark.parametrize("value", [{Mute(): 1}, {"a": Mute()}, [{1: Mute()}]])
def test_pl_06_a_result_that_cannot_be_looked_at_fails_no_body_that_ran(value: Any) -> None:
    result = run(lambda context: value)
    assert isinstance(result, Completed)
    assert result.result is None
    assert "was not stored" in str(result.note)


def forks(how: str) -> int:
    """The process that goes on in its child, in the child."""
    with warnings.catch_warnings():  # other threads run, as in a worker
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        if how == "exits":
            raise SystemExit(3)
        if how == "fails":
            raise ValueError("in the child")
    return child


def forks_here(context: Any, how: str) -> int:
    return forks(how)


async def forks_in_the_loop(context: Any, how: str) -> int:
    return forks(how)


@pytest.mark.parametrize("handler", [forks_here, forks_in_the_loop])
@pytest.mark.parametrize(("how", "status"), [("returns", 0), ("exits", 3), ("fails", 1)])
def test_fk_01_a_process_that_a_body_has_forked_ends_with_the_body(
    handler: Callable[..., Any], how: str, status: int
) -> None:
    """What comes behind it, a rollback above all, would go over the session that it shares with its parent."""
    parent = os.getpid()
    result = run(handler, json.dumps({"how": how}))
    if os.getpid() != parent:
        os._exit(99)
    assert isinstance(result, Completed)
    _, ended = os.waitpid(int(str(result.result)), 0)
    assert os.waitstatus_to_exitcode(ended) == status


def test_le_03_a_body_that_was_cancelled_for_its_hard_timeout_has_ended_when_its_job_fails() -> None:
    """Else its next attempt would run beside it, and one that blocks the loop would hold up all others of the process."""
    order, begun = list[str](), threading.Event()

    class Loop(AsyncLoop):
        def submit(self, body: Any) -> Any:
            running = super().submit(body)
            assert begun.wait(60)
            return running

    async def reluctant(context: Any) -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            order.append("cancelled")
            await asyncio.sleep(0.2)
            order.append("ended")

    result = run(reluctant, hard=0.01, loop=Loop())
    assert isinstance(result, Failed)
    assert (result.error.cls, order) == ("TimeoutError", ["cancelled", "ended"])
