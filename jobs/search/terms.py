"""The search language: a line of text to terms, or the place where it cannot be understood and what to write instead.

    line  = [ term ( " " term )* ]
    term  = [ "-" ] name ":" value ( "," value )*   |   value
    name  = one of FIELDS   |   "payload." path
    value = characters without space, comma and quote   |   '"' anything, with "" for a quote '"'

Terms are ANDed, commas mean "or". A value without a name is an id, or a name that is looked up.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

MAX_LENGTH = 500
MAX_TERMS = 20
MAX_VALUES = 50

FIELDS: dict[str, str] = {
    "id": "ids of jobs",
    "tenant": "whose job it is",
    "type": "job type; billing.* means all types whose names begin so",
    "queue": "work queue",
    "state": "scheduled, queued, running, retryable, completed, failed or cancelled",
    "group": "label that was given when the job was scheduled",
    "key": "unique key that a job holds",
    "error": "fingerprint of the error by which a job failed",
    "cron": "id of the cron definition that fired",
    "action": "number of the command or operation that put the job where it is",
    "worker": "id of the process that runs it now",
    "is": "overdue: its time has come more than 10 seconds ago and nobody has it; held: a hold keeps it from starting; stuck: the process that has it is gone",
    "late": "how long after its time it started, or has waited since: >5m, <10s, 1m..1h",
    "ran": "how long its last attempt ran, or has run: >10m, <1s, 1m..1h",
    "attempt": "how many attempts it has used: 3, >3, 2..5",
    "payload": "value at a path that its type declares searchable: payload.order.id:17",
    "due": "window of due times",
    "run": "window in which waiting jobs are to start next",
    "finished": "window in which jobs ended",
}
"""Every term and what it means."""
PAYLOAD = "payload"
"""The one whose name goes on: a dot and the keys of a path."""
WINDOWS = ("due", "run", "finished")
NEGATABLE = ("tenant", "type", "queue", "state")
ALIASES = {
    "campaign": "group",
    "job_type": "type",
    "fingerprint": "error",
    "slug": "tenant",
    "failed": "finished",
    "op": "action",
    "operation": "action",
    "attempts": "attempt",
    "retries": "attempt",
    "lateness": "late",
    "duration": "ran",
    "runtime": "ran",
    "run_at": "run",
}
"""What people write elsewhere; only for telling them what it is called here."""


class SearchError(ValueError):
    """The line cannot be understood. `start` and `end` say which part of it, as indexes of characters; `hint` what to
    write instead, if that is known."""

    def __init__(self, message: str, start: int, end: int, hint: str = "") -> None:
        self.message, self.start, self.end, self.hint = message, start, end, hint
        super().__init__(f"at character {start + 1}: {message}" + (f" {hint}" if hint else ""))

    def pointer(self, text: str) -> str:
        """The line, and under it a caret for each character of the part that is wrong."""
        marks = " " * self.start + "^" * max(1, min(self.end, len(text)) - self.start)
        return f"{text}\n{marks}"


@dataclass(frozen=True)
class Term:
    name: str
    """"" for a value alone."""
    values: tuple[str, ...]
    start: int
    end: int
    negated: bool = False

    def __str__(self) -> str:
        if not self.name:
            return quoted(self.values[0], alone=True)
        values = ",".join(quoted(value) for value in self.values)
        return f"{'-' if self.negated else ''}{self.name}:{values}"


def quoted(value: str, *, alone: bool = False) -> str:
    """The value as it is written in a line, behind a name or alone."""
    special = '",:' if alone else '",'
    if (
        value
        and not any(character.isspace() or character in special for character in value)
        and value[0] != "-"
    ):
        return value
    doubled = value.replace('"', '""')
    return f'"{doubled}"'


def parse(text: str, limit: int = MAX_LENGTH) -> list[Term]:
    """The terms of a line, in their order. SearchError says what is wrong with it and where."""
    if len(text) > limit:
        raise SearchError(f"A search has at most {limit} characters, this has {len(text)}.", limit, len(text))
    if (zero := text.find("\0")) >= 0:
        raise SearchError("Null characters are not allowed.", zero, zero + 1)
    terms: list[Term] = []
    place = _spaces(text, 0)
    while place < len(text):
        term = _term(text, place)
        if len(terms) == MAX_TERMS:
            raise SearchError(f"A search has at most {MAX_TERMS} terms.", term.start, len(text))
        refuse_second(terms, term)
        terms.append(term)
        place = _spaces(text, term.end)
    return terms


def refuse_second(terms: Sequence[Term], term: Term) -> None:
    """SearchError when one of this name is among them already."""
    before = next((each for each in terms if (each.name, each.negated) == (term.name, term.negated)), None)
    if before and term.name:
        merged = Term(term.name, before.values + term.values, 0, 0, term.negated)
        raise SearchError(
            f"{term.name}: is here a second time.",
            term.start,
            term.end,
            f"For “one or the other” write {merged}",
        )


def _term(text: str, start: int) -> Term:
    negated = text[start] == "-" and start + 1 < len(text) and text[start + 1] != " "
    begin = start + negated
    if text[begin] == '"':
        value, end = _quoted(text, begin)
        if negated:
            raise SearchError(
                "Only terms with a name can be excluded.", start, end, f"As in -state:{quoted(value)}"
            )
        return Term("", (value,), start, end)
    end = begin
    while end < len(text) and not text[end].isspace() and text[end] not in ':",':
        end += 1
    name = text[begin:end]
    if end < len(text) and text[end] == ":":
        return _named(text, start, end, name, negated)
    if end < len(text) and text[end] in '",':
        what = (
            "A quote begins in the middle of a word."
            if text[end] == '"'
            else "A comma belongs between the values of a term."
        )
        raise SearchError(
            what,
            end,
            end + 1,
            "As in state:queued,running" if text[end] == "," else 'As in group:"spring sale"',
        )
    if negated:
        raise SearchError("Only terms with a name can be excluded.", start, end, "As in -state:completed")
    return Term("", (name,), start, end)


def _named(text: str, start: int, colon: int, name: str, negated: bool) -> Term:
    field = PAYLOAD if name.startswith(f"{PAYLOAD}.") else name
    if field not in FIELDS:
        raise SearchError(f"There is no term “{name}:”.", start, colon, _instead(name))
    if negated and name not in NEGATABLE:
        raise SearchError(
            f"{name}: cannot be excluded.", start, colon, f"That works for {', '.join(NEGATABLE)} only."
        )
    values: list[str] = []
    place = colon + 1
    while True:
        value, end = _value(text, place)
        if not value:
            raise SearchError(
                f"{name}: has no value here.", start, max(end, colon + 1), f"It takes: {FIELDS[field]}."
            )
        values.append(value)
        if len(values) > MAX_VALUES:
            raise SearchError(f"{name}: takes at most {MAX_VALUES} values.", place, end)
        if end == len(text) or text[end].isspace():
            return Term(name, tuple(values), start, end, negated)
        if text[end] != ",":
            raise SearchError("After a closing quote there is a comma or a space.", end, end + 1)
        place = end + 1


def _value(text: str, start: int) -> tuple[str, int]:
    if start < len(text) and text[start] == '"':
        return _quoted(text, start)
    end = start
    while end < len(text) and not text[end].isspace() and text[end] != ",":
        if text[end] == '"':
            raise SearchError(
                "A quote begins in the middle of a value.", end, end + 1, "Put the whole value into quotes."
            )
        end += 1
    return text[start:end], end


def _quoted(text: str, start: int) -> tuple[str, int]:
    place, found = start + 1, []
    while True:
        end = text.find('"', place)
        if end < 0:
            raise SearchError("This quote is not closed.", start, len(text))
        found.append(text[place:end])
        if text[end + 1 : end + 2] != '"':
            return '"'.join(found), end + 1
        place = end + 2


def _spaces(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _instead(name: str) -> str:
    if near := ALIASES.get(name) or next(iter(difflib.get_close_matches(name, FIELDS, 1)), None):
        return f"Did you mean {near}:?"
    return f"There are {', '.join(FIELDS)}."
