"""What becomes of a body that did not do what its job was for, and of results that nobody can read."""

from __future__ import annotations

import functools
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


def run(handler: Callable[..., Any]) -> Result:
    made = job_type("test.here", backoff=Backoff.constant(timedelta()))(handler)
    registry.remove("test.here")
    context = Context(uuid4(), "test.here", 1, 3, "default", "test.here")
    return execute(made, context, "{}", AsyncLoop())


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
