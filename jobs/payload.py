"""Payloads and results ↔ JSON that PostgreSQL stores and gives back equal; refusals name the path inside the value."""

from __future__ import annotations

import json
import math
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import Any, TypeVar
from uuid import UUID

from jobs.codecs import build, codec, require_same
from jobs.errors import InvalidPayload

T = TypeVar("T")
MAX_DEPTH = 64
_DECODER = json.JSONDecoder()
_BEYOND_INT = 10**4000  # Python refuses to turn text of more than 4,300 digits back into an int
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
# What JSONEncoder makes anew for each value; None where the interpreter has no such accelerator.
_ENCODE: Any = c_make_encoder and c_make_encoder(
    None, _ENCODER.default, encode_basestring, None, ":", ",", False, False, False
)
_STRING_OR_BIG_FLOAT = re.compile(r'"(?:[^"\\]|\\.)*+"|-?\d+(?:\.\d+)?e\+\d+')
_ANNOTATED = (UUID, Decimal, datetime, date, timedelta)
_ADVICE = {
    bytes: "send base64 text, or store the bytes elsewhere and send a reference",
    tuple: "it would come back as a list: send a list",
    set: "send a sorted list",
    frozenset: "send a sorted list",
    time: "send its isoformat()",
}


def encode(value: Any, *, limit: int, field: str = "payload") -> str:
    """Compact JSON text of at most `limit` bytes (UTF-8) that jsonb stores and gives back equal, with the same types.

    The field "payload" is keyword arguments: a dict, or None for {}. Any other field, say a result, is any JSON value.
    InvalidPayload names the path of what JSON or PostgreSQL cannot keep: other types and subclasses, tuples, keys that
    are not text, NUL, lone surrogates, NaN and infinity, more than 64 levels, cycles, too many bytes.
    """
    if field == "payload":
        value = _keywords(value)
    try:
        _check([value], limit + 2, -1)
    except _TooLarge:
        raise InvalidPayload(field, _too_large("far larger", limit)) from None
    except _Flaw as flaw:
        raise InvalidPayload(field + flaw.path.removeprefix("[0]"), flaw.message) from None
    text = "".join(_ENCODE(value, 0)) if _ENCODE else _ENCODER.encode(value)
    if "e+" in text:
        # jsonb's numbers are numeric: it gives 1e300 back as a whole number, which is another value and another type.
        text = _STRING_OR_BIG_FLOAT.sub(_with_fraction, text)
    size = len(text) if text.isascii() else len(text.encode())
    if size > limit:
        raise InvalidPayload(field, _too_large(f"{size:,} bytes", limit))
    return text


def dump(payload: Any, payload_type: type[Any] | None) -> dict[str, Any]:
    """The JSON form of a payload: of the dataclass `payload_type`, or of keyword arguments when that is None.

    For a dataclass, a dict stands for its fields, each as its value or already in its JSON form (`delay(**fields)`,
    a cron definition). InvalidPayload names the field that is unknown, missing or of another type than annotated.
    """
    if payload_type is None:
        plain: dict[str, Any] = _keywords(payload)
        return plain
    if payload is None or type(payload) is dict:
        payload = build(payload or {}, payload_type, "payload")
    try:
        annotation: Any = payload_type
        dumped: dict[str, Any] = codec(annotation).dump(payload, "payload")
        require_same(payload, dumped)
    except RecursionError:
        raise InvalidPayload("payload", "contains itself, or is nested too deep; flatten it") from None
    return dumped


def decode(text: str) -> dict[str, Any]:
    """A payload as the database gives it: JSON text without white space around it."""
    value: dict[str, Any] = _DECODER.raw_decode(text)[0]
    return value


def load(data: dict[str, Any], payload_type: type[T]) -> T:
    """The dataclass that `dump` made `data` of. InvalidPayload names the field that does not fit (any more)."""
    try:
        annotation: Any = payload_type
        loaded: T = codec(annotation).load(data, "payload")
    except RecursionError:
        raise InvalidPayload("payload", "is nested too deep") from None
    return loaded


class _TooLarge(Exception):
    pass


class _Flaw(Exception):
    """What is wrong; its path is collected while the stack unwinds, so that sound values pay nothing for it."""

    def __init__(self, message: str, node: object = None) -> None:
        self.message, self.node, self.path = message, node, ""

    def climb(self, parent: object, step: int | str) -> None:
        if isinstance(step, int):
            self.path = f"[{step}]{self.path}"
        elif step.isidentifier() and len(step) <= 60:
            self.path = f".{step}{self.path}"
        else:
            self.path = f"[{_shown(step)}]{self.path}"
        if self.node is parent:
            self.message, self.path = "contains itself; break the cycle", ""


def _keywords(payload: Any) -> Any:
    if payload is not None and type(payload) is not dict:
        kind = type(payload).__name__
        raise InvalidPayload(
            "payload", f"is a {kind}; send a dict of keyword arguments, or None for no arguments"
        )
    return payload or {}


def _check(node: Any, room: int, depth: int) -> int:
    """How many of `room` bytes are left at most after `node`, a dict or list; raises for the first flaw in it.

    Counting before encoding also ends the walk of a small value that refers to its parts so often that its text
    would fill the memory.
    """
    if depth >= MAX_DEPTH:
        raise _Flaw(f"is nested deeper than {MAX_DEPTH} levels; flatten it", node)
    keyed = type(node) is dict
    for step, item in node.items() if keyed else enumerate(node):
        if keyed:
            room -= (
                len(step) if type(step) is str and step.isascii() and "\0" not in step else _check_key(step)
            )
        kind = type(item)
        try:
            if kind is str:
                room -= len(item)
                if "\0" in item or not item.isascii():
                    _check_text(item, "")
            elif kind is dict or kind is list:
                room = _check(item, room, depth + 1)
            elif kind is not bool and item is not None:
                _check_number(item)
        except _Flaw as flaw:
            flaw.climb(node, step)
            raise
        room -= 2
        if room < 0:
            raise _TooLarge
    return room


def _check_key(key: Any) -> int:
    if type(key) is not str:
        raise _Flaw(f"has the key {_shown(key)}, {_a(type(key))}; keys are text: send str(key)")
    _check_text(key, f"has the key {_shown(key)}, which ")
    return len(key)


def _check_text(text: str, prefix: str) -> None:
    if (at := text.find("\0")) >= 0:
        raise _Flaw(f"{prefix}contains NUL (at {at}), which PostgreSQL cannot store; remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _Flaw(
            f"{prefix}contains a lone surrogate (at {error.start}), which is no character; decode the text properly"
        ) from None


def _check_number(item: Any) -> None:
    kind = type(item)
    if kind is float:
        if not math.isfinite(item):
            raise _Flaw(f"is {item}, which JSON does not have; send None or text")
    elif kind is not int:
        raise _Flaw(f"is {_a(kind)}: {_advice(kind)}")
    elif not -_BEYOND_INT < item < _BEYOND_INT:
        raise _Flaw("is a whole number of more than 4,000 digits; send it as text")


def _advice(kind: type[Any]) -> str:
    if issubclass(kind, _ANNOTATED):
        return "send its text, or make the payload a dataclass, which converts it"
    if issubclass(kind, Enum):
        return "send its value, or make the payload a dataclass, which converts it"
    for plain in (str, int, float, dict, list):
        if issubclass(kind, plain):
            return f"it would come back as a plain {plain.__name__}: send that"
    for known, advice in _ADVICE.items():
        if issubclass(kind, known):
            return advice
    if hasattr(kind, "_meta") and hasattr(kind, "pk"):
        return "send its primary key and fetch it in the handler"
    return "JSON has dict, list, str, int, float, bool and None"


def _with_fraction(match: re.Match[str]) -> str:
    text = match[0]
    return text if text[0] == '"' else f"{float(text):.1f}"


def _a(kind: type[Any]) -> str:
    return f"{'an' if kind.__name__[0] in 'aeiouAEIO' else 'a'} {kind.__name__}"


def _shown(key: Any) -> str:
    text = ascii(key)
    return text if len(text) <= 60 else text[:59] + "…"


def _too_large(size: str, limit: int) -> str:
    return f"is {size} as JSON, more than the {limit:,} bytes allowed; store the data elsewhere and send a reference"
