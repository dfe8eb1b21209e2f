"""Payloads: terms about a value at a path that the type of the job declares searchable.

No index serves them: they are judged job by job among those of the named types in the window, in the order of the page,
so that a look goes as far as its patience and says where that was. Nobody may search by another path, whoever he is: each
answer would tell a little of a value that to see asks for a reason and leaves a record.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import BooleanField, F, Func, JSONField, Q, Value

from jobs.registry import registry
from jobs.search.terms import PAYLOAD, SearchError, Term

_JSON = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d{1,15})?|true|false", re.ASCII)
"""What is no text in JSON."""


@dataclass(frozen=True)
class Match:
    """One of these values at this path of keys. Lists and objects are equal to none."""

    keys: tuple[str, ...]
    values: tuple[str, ...]

    def lookup(self, payload: str) -> Q:
        """For a row whose job's payload this column is."""
        at = Func(
            F(payload),
            *map(Value, self.keys),
            function="jsonb_extract_path",
            output_field=JSONField(),
        )
        read = [reading for value in self.values for reading in _readings(value)]
        return Q(_Any(at, Value(read, ArrayField(JSONField()))))


class _Any(Func):
    """The left is equal to an element of the right; evaluated once, however long the list. The planner takes an equality
    that it knows nothing of for a rare one, and would read and sort all days for the few rows it expects; of coalesce() it
    thinks nothing, and goes through the jobs in the order of the page until that is full."""

    template, arg_joiner = "coalesce((%(expressions)s)), false)", " = ANY("
    output_field = BooleanField()


def is_payload(term: Term) -> bool:
    return term.name.partition(".")[0] == PAYLOAD


def match(term: Term, types: Sequence[str] | None) -> Match:
    """What a term asks for. `types`: those that the line names; None: none. SearchError unless each declares its path."""
    path = term.name.partition(".")[2]
    if not path:
        raise SearchError("payload: names no path.", term.start, term.end, "As in payload.order.id:17")
    if types is None:
        raise SearchError(
            f"{term.name}: is searched for among the jobs of a type.", term.start, term.end, _who(path)
        )
    for name in types:
        known = registry.get(name)
        declared = known.searchable if known else ()
        if path not in declared:
            raise SearchError(
                f"The type “{name}” does not declare “{path}” searchable.",
                term.start,
                term.end,
                _instead(path, declared),
            )
    return Match(tuple(path.split(".")), term.values)


def _readings(value: str) -> list[Any]:
    """The text, and the number or truth value that is written so."""
    return [value, json.loads(value)] if _JSON.fullmatch(value) else [value]


def _who(path: str) -> str:
    names = [each.name for each in registry.types() if path in each.searchable]
    return (
        f"Write type:{' or type:'.join(names[:5])} beside it" if names else "No type declares it searchable."
    )


def _instead(path: str, declared: Sequence[str]) -> str:
    if near := difflib.get_close_matches(path, declared, 1):
        return f"Did you mean {PAYLOAD}.{near[0]}:?"
    if declared:
        return f"It declares {', '.join(declared)}."
    return "It declares nothing: that is @job_type(…, searchable=[…]) in its code."
