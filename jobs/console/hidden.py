"""Texts that leave the house: without any value of the settings and the environment that could be a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings

from jobs.text import scrub

REMOVED = "[removed]"
SHORTEST = 4
"""What is shorter would be found in any text."""
_NAMES = re.compile(
    r"(?i)key|secret|token|pass|pwd|salt|dsn|ur[li]|credential|auth|cookie|private|cert|account"
)
_DEPTH = 5


def hider() -> Callable[[str], str]:
    """Takes out of a text whatever is a secret now, then what looks like one."""
    found = {each for each in _secrets() if len(each) >= SHORTEST}
    if not found:
        return scrub
    pattern = re.compile("|".join(re.escape(each) for each in sorted(found, key=len, reverse=True)))
    return lambda text: scrub(pattern.sub(REMOVED, text))


def _secrets() -> Iterator[str]:
    for name, text in os.environ.items():
        yield from _of(name, text, is_secret=False)
    for name in dir(settings):
        if name.isupper():
            yield from _of(name, getattr(settings, name), is_secret=False)


def _of(name: str, value: Any, *, is_secret: bool, depth: int = 0) -> Iterator[str]:
    """The texts of a value that its name, or that of what it is in, calls secret; and passwords in addresses."""
    is_secret = is_secret or _NAMES.search(name) is not None
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        if is_secret:
            yield value
        if "://" in value:
            yield from _passwords(value)
    elif isinstance(value, dict) and depth < _DEPTH:
        for key, each in value.items():
            yield from _of(str(key), each, is_secret=is_secret, depth=depth + 1)
    elif isinstance(value, list | tuple | set | frozenset) and depth < _DEPTH:
        for each in value:
            yield from _of("", each, is_secret=is_secret, depth=depth + 1)


def _passwords(address: str) -> Iterator[str]:
    try:
        password = urlsplit(address).password
    except ValueError:
        return
    if password:
        yield from {password, unquote(password)}
