"""Dataclass payloads ↔ plain JSON, both ways by their annotations."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, InitVar, fields, is_dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union
from uuid import UUID
from zoneinfo import ZoneInfo

from django.utils.dateparse import parse_duration
from django.utils.duration import duration_iso_string

from jobs.errors import InvalidPayload, NotConfigured

_SCALARS = (str, int, float, bool, NoneType)


class Codec(NamedTuple):
    """Both functions take a value and its path, and raise InvalidPayload with that path."""

    dump: Callable[[Any, str], Any]
    load: Callable[[Any, str], Any]


def build(values: dict[str, Any], cls: type[Any], path: str) -> Any:
    """The dataclass of these fields, each given as its value or in its JSON form."""
    return _construct(cls, values, path, _dumped_or_loaded)


@cache
def codec(annotation: Any) -> Codec:
    """How values of this annotation are converted. NotConfigured for one that JSON cannot carry unambiguously."""
    annotation = getattr(annotation, "__value__", annotation)  # type aliases of Python 3.12
    annotation = getattr(annotation, "__supertype__", annotation)  # NewType
    if annotation is Any or annotation is object:
        return Codec(_same, _same)
    if annotation is None or annotation in _SCALARS:
        return _scalars(NoneType if annotation is None else annotation)
    origin, arguments = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if origin in _COMPOSITES:
        return _COMPOSITES[origin](arguments)
    if annotation in _TEXTS:
        return _text(annotation, *_TEXTS[annotation])
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _enum(annotation)
    if isinstance(annotation, type) and is_dataclass(annotation):
        return _dataclass(annotation)
    raise NotConfigured(
        f"a payload field cannot be annotated {annotation!r}: use JSON types, UUID, Decimal, datetime, date, timedelta, "
        "Enum, Literal, dataclasses, and list, tuple, dict[str, …] and Optional of these"
    )


def _same(value: Any, path: str) -> Any:
    return value


def _refuse(path: str, wanted: str, value: Any) -> typing.NoReturn:
    # The value itself may be a secret and would end in logs.
    raise InvalidPayload(path, f"must be {wanted}, not {type(value).__name__}")


def _scalars(*kinds: type[Any]) -> Codec:
    allowed = {*kinds, *([int] if float in kinds else [])}
    wanted = " or ".join("None" if kind is NoneType else kind.__name__ for kind in kinds)

    def check(value: Any, path: str) -> Any:
        return value if type(value) in allowed else _refuse(path, wanted, value)

    return Codec(check, check)


def _text(kind: type[Any], to_text: Callable[[Any], str], from_text: Callable[[str], Any]) -> Codec:
    def dump(value: Any, path: str) -> str:
        if type(value) is not kind:
            _refuse(path, kind.__name__, value)
        try:
            text = to_text(value)
            back = from_text(text)
        except (ValueError, ArithmeticError) as error:
            raise InvalidPayload(path, str(error)) from None
        if back != value:
            raise InvalidPayload(path, "is a local time that does not exist or is ambiguous; send it in UTC")
        return text

    def load(data: Any, path: str) -> Any:
        if type(data) is not str:
            _refuse(path, f"{kind.__name__} as text", data)
        try:
            return from_text(data)
        except (ValueError, ArithmeticError):
            raise InvalidPayload(path, f"is text that is no {kind.__name__}") from None

    return Codec(dump, load)


def _datetime_text(value: datetime) -> str:
    """ISO 8601; a named zone is kept as in RFC 9557, because times of two zones may differ though they are one instant."""
    if value.utcoffset() is None:
        raise ValueError("is a naive datetime; say which zone it is in (timezone.now())")
    key = value.tzinfo.key if isinstance(value.tzinfo, ZoneInfo) else None
    return value.isoformat() + (f"[{key}]" if key else "")


def _datetime(text: str) -> datetime:
    stamp, _, zone = text.partition("[")
    value = datetime.fromisoformat(stamp)
    if value.utcoffset() is None:
        raise ValueError("is a naive datetime")
    try:
        return value.astimezone(ZoneInfo(zone.removesuffix("]"))) if zone else value
    except (KeyError, OSError):
        raise ValueError(f"unknown zone {zone!r}") from None


def _decimal(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError("is no decimal number") from None
    if not value.is_finite():
        raise ValueError(f"is {value}; send a finite Decimal, or None")
    return value


def _duration(text: str) -> timedelta:
    value = parse_duration(text)
    if value is None:
        raise ValueError("is no ISO 8601 duration")
    return value


_TEXTS: dict[Any, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    UUID: (str, UUID),
    Decimal: (str, _decimal),
    datetime: (_datetime_text, _datetime),
    date: (date.isoformat, date.fromisoformat),
    timedelta: (duration_iso_string, _duration),
}


def _enum(cls: type[Enum]) -> Codec:
    by_value = all(type(member.value) in (str, int) for member in cls)

    def dump(value: Any, path: str) -> Any:
        if type(value) is not cls:
            _refuse(path, cls.__name__, value)
        return value.value if by_value else value.name

    def load(data: Any, path: str) -> Enum:
        try:
            if type(data) in (str, int):
                return cls(data) if by_value else cls[data]
        except (ValueError, KeyError):
            pass
        raise InvalidPayload(path, f"is none of {cls.__name__}: {', '.join(cls.__members__)}")

    return Codec(dump, load)


def _sequence(kind: type[Any], arguments: tuple[Any, ...]) -> Codec:
    """list[T] and tuple[T, ...] of any length; tuple[A, B] of its own."""
    fixed = None
    if kind is tuple and arguments and arguments[1:] != (...,):
        fixed = [codec(argument) for argument in arguments]
    item = codec(arguments[0]) if arguments else codec(Any)

    def convert(value: Any, path: str, wanted: type[Any], which: Literal[0, 1]) -> list[Any]:
        if type(value) is not wanted:
            _refuse(path, f"a {wanted.__name__}", value)
        codecs = [item] * len(value) if fixed is None else fixed
        if len(codecs) != len(value):
            raise InvalidPayload(path, f"must have {len(codecs)} items, not {len(value)}")
        return [c[which](each, f"{path}[{i}]") for i, (c, each) in enumerate(zip(codecs, value, strict=True))]

    return Codec(
        lambda value, path: convert(value, path, kind, 0),
        lambda data, path: kind(convert(data, path, list, 1)),
    )


def _dict(arguments: tuple[Any, ...]) -> Codec:
    if arguments and arguments[0] is not str:
        raise NotConfigured(f"a payload's dict has text keys: dict[str, …], not dict[{arguments[0]!r}, …]")
    item = codec(arguments[1]) if arguments else codec(Any)

    def convert(value: Any, path: str, which: Literal[0, 1]) -> dict[str, Any]:
        if type(value) is not dict:
            _refuse(path, "a dict", value)
        return {key: item[which](each, f"{path}.{key}") for key, each in value.items()}

    return Codec(lambda value, path: convert(value, path, 0), lambda data, path: convert(data, path, 1))


def _union(arguments: tuple[Any, ...]) -> Codec:
    if all(argument in _SCALARS for argument in arguments):
        return _scalars(*arguments)
    rest = [argument for argument in arguments if argument is not NoneType]
    if len(rest) > 1:
        raise NotConfigured(
            f"a payload field cannot be any of {rest}: JSON does not tell them apart; use Optional"
        )
    dump, load = codec(rest[0])
    return Codec(
        lambda value, path: None if value is None else dump(value, path),
        lambda data, path: None if data is None else load(data, path),
    )


def _literal(arguments: tuple[Any, ...]) -> Codec:
    allowed = {(type(argument), argument) for argument in arguments}
    if not all(kind in _SCALARS for kind, _ in allowed):
        raise NotConfigured(f"a payload's Literal holds JSON values, not {arguments!r}")

    def check(value: Any, path: str) -> Any:
        if type(value) in _SCALARS and (type(value), value) in allowed:
            return value
        raise InvalidPayload(path, f"must be one of {', '.join(map(repr, arguments))}")

    return Codec(check, check)


_COMPOSITES: dict[Any, Callable[[tuple[Any, ...]], Codec]] = {
    list: partial(_sequence, list),
    tuple: partial(_sequence, tuple),
    dict: _dict,
    Union: _union,
    UnionType: _union,
    Literal: _literal,
}


@cache
def stored_fields(cls: Any) -> dict[str, tuple[Field[Any], Codec]]:
    """The stored fields of a dataclass. NotConfigured names the one that cannot be stored."""
    try:
        hints = typing.get_type_hints(cls)
        for name, hint in hints.items():
            if isinstance(hint, InitVar):
                raise NotConfigured(f"{name} is an InitVar, which nothing of the dataclass keeps")
        return {each.name: (each, codec(hints[each.name])) for each in fields(cls) if each.init}
    except (NameError, NotConfigured) as error:
        raise NotConfigured(f"{cls.__qualname__} cannot be a payload: {error}") from error


def _dataclass(cls: Any) -> Codec:
    def known() -> dict[str, tuple[Field[Any], Codec]]:
        return stored_fields(cls)  # only when used, because a dataclass may refer to itself

    def dump(value: Any, path: str) -> dict[str, Any]:
        if type(value) is not cls:
            _refuse(path, cls.__name__, value)
        return {name: c.dump(getattr(value, name), f"{path}.{name}") for name, (_, c) in known().items()}

    def load(data: Any, path: str) -> Any:
        if type(data) is not dict:
            _refuse(path, f"a dict of {cls.__name__}", data)
        return _construct(cls, data, path, lambda c, value, where: c.load(value, where))

    return Codec(dump, load)


@cache
def within(cls: Any) -> frozenset[Any]:
    """The dataclasses of which one of this may be made, itself included. NotConfigured names one that cannot be stored."""
    found, todo = set[Any](), [cls]
    while todo:
        each = todo.pop()
        if isinstance(each, type) and is_dataclass(each) and each not in found:
            found.add(each)
            stored_fields(each)
            todo += typing.get_type_hints(each).values()
        todo += typing.get_args(each)
    return frozenset(found)


@cache
def _computes(cls: Any) -> bool:
    """Whether one says more than it is made of, or something in it."""
    return any(
        hasattr(each, "__post_init__") or not all(f.init for f in fields(each)) for each in within(cls)
    )


@cache
def _comparable(cls: Any) -> bool:
    return all(each.__eq__ is not object.__eq__ for each in within(cls))


def require_same(payload: Any, data: dict[str, Any]) -> None:
    """InvalidPayload unless the dataclass that `data` was made of comes back equal."""
    cls: Any = type(payload)
    if not _computes(cls):
        return
    again = codec(cls).load(data, "payload")
    if codec(cls).dump(again, "payload") != data or (_comparable(cls) and again != payload):
        raise InvalidPayload(
            "payload",
            f"would not come back equal: {cls.__name__}, or one in it, changes each time what it is made of, or holds what "
            "is not stored (init=False)",
        )


def _construct(cls: Any, values: dict[str, Any], path: str, convert: Callable[[Codec, Any, str], Any]) -> Any:
    known = stored_fields(cls)
    for name in values:
        if name not in known:
            raise InvalidPayload(
                f"{path}.{name}", f"is no field of {cls.__name__}; it has {', '.join(known)}"
            )
    for name, (each, _) in known.items():
        if name not in values and each.default is MISSING and each.default_factory is MISSING:
            raise InvalidPayload(f"{path}.{name}", f"is missing; {cls.__name__} has no default for it")
    arguments = {name: convert(known[name][1], value, f"{path}.{name}") for name, value in values.items()}
    try:
        return cls(**arguments)
    except Exception as error:  # the dataclass's own __post_init__
        raise InvalidPayload(path, f"{cls.__name__} refused it: {error}") from error


def _dumped_or_loaded(each: Codec, value: Any, path: str) -> Any:
    try:
        each.dump(value, path)
    except InvalidPayload as refused:
        try:
            return each.load(value, path)
        except InvalidPayload:
            raise refused from None
    return value
