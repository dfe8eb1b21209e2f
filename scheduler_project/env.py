"""The environment, read through a few typed helpers that fail loudly: one sentence that names the variable."""

from __future__ import annotations

import os
import re
import secrets
import tempfile
import types
from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints
from urllib.parse import unquote, urlsplit

import environ

from jobs.conf import Conf, parse
from jobs.errors import NotConfigured
from scheduler_project.embedded.place import make_folder

TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
PREFIX = "SCHEDULER_"
APPS = "SCHEDULER_APPS"  # has the prefix but is no setting of the scheduler


def text(name: str, default: str | None = None) -> str:
    value = os.environ.get(name, "").strip() or default
    if value is None:
        raise NotConfigured(f"{name} is not set; it is required with DATABASE_URL unless DEBUG=1")
    return value


def flag(name: str, *, default: bool) -> bool:
    value = text(name, str(default)).lower()
    if value not in TRUE + FALSE:
        raise NotConfigured(f"{name} is {value!r}; it must be 1 or 0")
    return value in TRUE


def names(name: str, default: str | None = "") -> list[str]:
    """A comma list."""
    return [item.strip() for item in text(name, default).split(",") if item.strip()]


def one_of(name: str, options: tuple[str, ...], default: str) -> str:
    value = text(name, default)
    if value not in options:
        raise NotConfigured(f"{name} is {value!r}; it must be one of {', '.join(options)}")
    return value


def whole(name: str, default: int) -> int:
    return _whole(name, text(name, str(default)))


def database(name: str, default: str | None = None) -> dict[str, Any]:
    """A postgresql:// address as Django's settings of one database."""
    url = text(name, default)
    try:
        is_postgres = urlsplit(url).scheme in environ.Env.POSTGRES_FAMILY
        found: dict[str, Any] = environ.Env.db_url_config(url) if is_postgres else {}
    except ValueError:
        found = {}
    if not found.get("NAME"):
        # The value is not shown: it may hold a password.
        raise NotConfigured(f"{name} must be an address like postgresql://user:password@host:5432/name")
    options = found.setdefault("OPTIONS", {})
    found["HOST"] = options.pop("host", None) or unquote(str(found["HOST"]))
    found["PORT"] = str(options.pop("port", None) or found["PORT"])
    return found


def secret_key(file: Path) -> str:
    """A key of this checkout's own, for development: random, kept in `file`."""
    try:
        if not file.exists():
            make_folder(file.parent)
            with tempfile.NamedTemporaryFile("w", dir=file.parent) as draft:  # readable by its owner only
                draft.write(secrets.token_urlsafe(50))
                draft.flush()
                os.link(draft.name, file)
    except FileExistsError:
        pass  # another process was first: its key counts
    except OSError:
        return secrets.token_urlsafe(50)  # nothing can be kept here: sessions end with this process
    return file.read_text()


def scheduler() -> dict[str, Any]:
    """Every SCHEDULER_<NAME>, with the type that the setting of that name has."""
    hints = get_type_hints(Conf)
    known = {f"{PREFIX}{field.name.upper()}": field.name for field in fields(Conf)}
    values = {}
    for name in sorted(os.environ):
        if not name.startswith(PREFIX) or name == APPS:
            continue
        if name not in known:
            raise NotConfigured(f"{name} is no setting; there are {', '.join(sorted([*known, APPS]))}")
        values[known[name]] = _typed(name, os.environ[name].strip(), hints[known[name]])
    try:
        parse(values)
    except NotConfigured as error:
        as_variable = re.sub(r"SCHEDULER\['(\w+)'\]", lambda found: f"{PREFIX}{found[1].upper()}", str(error))
        raise NotConfigured(as_variable) from None
    return values


def _typed(name: str, value: str, hint: Any) -> Any:
    if get_origin(hint) in (types.UnionType, Union):
        if value.lower() in ("", "none"):
            return None
        hint = next(option for option in get_args(hint) if option is not types.NoneType)
    if get_origin(hint) is tuple:
        return tuple(names(name))
    return _READERS[hint](name, value)


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise NotConfigured(f"{name} is {value!r}; it must be a number") from None


def _whole(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise NotConfigured(f"{name} is {value!r}; it must be a whole number") from None


def _seconds(name: str, value: str) -> timedelta:
    try:
        return timedelta(seconds=float(value))
    except (ValueError, OverflowError):
        raise NotConfigured(f"{name} is {value!r}; it must be a number of seconds") from None


_READERS: dict[Any, Callable[[str, str], Any]] = {
    int: _whole,
    float: _number,
    timedelta: _seconds,
    str: lambda _, value: value,
}
