"""A function without one of its guards: what the mutation tests are made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from textwrap import dedent
from types import CodeType
from typing import Any

import psycopg
import pytest

Connection = psycopg.Connection[Any]
Check = Callable[..., None]
"""Of a connection, or of nothing."""
Mutants = dict[Check, list[tuple[Callable[..., Any], str, str]]]
"""By the check that notices them: a function, text of its source, and what stands there instead."""

MISTAKES = (NameError, TypeError, psycopg.errors.SyntaxError)
"""What the check of a change ends with that is no sound program: the table is wrong, not the function."""


def mutate(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], text: str, instead: str) -> None:
    """Change the function for everyone who has imported it."""
    source = dedent(inspect.getsource(function))
    times = source.count(text)
    assert times == 1, (
        f"{function.__qualname__} has {text!r} {times} times: it was changed, so change the table"
    )
    changed = compile(source.replace(text, instead), f"<mutant of {function.__qualname__}>", "exec")
    (code,) = (constant for constant in changed.co_consts if isinstance(constant, CodeType))
    monkeypatch.setattr(function, "__code__", code)


def notices(check: Check, *given: Connection) -> bool:
    """The check does not end well."""
    try:
        check(*given)
    except MISTAKES:
        raise
    except (Exception, pytest.fail.Exception):
        return True
    return False


def changes(mutants: Mutants) -> list[Any]:
    """One parameter set each, named after the change."""
    return [
        pytest.param(check, *change, id=_name(*change))
        for check, noticed in mutants.items()
        for change in noticed
    ]


def _name(function: Callable[..., Any], text: str, instead: str) -> str:
    return f"{function.__name__}: {text.strip()} -> {instead.strip()}"
