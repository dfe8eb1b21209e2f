"""Payloads and results on a page: their shape by default; on demand their values, never those of secrets."""

from __future__ import annotations

import json
import re
from typing import Any

from jobs.console.show import clean, visible

MASK = "••• hidden •••"
SHOWN_ITEMS = 3
"""Of a long list the shape shows so many items."""

_SECRET = re.compile(
    r"password|passwd|passphrase|pwd|secret|token|authori[sz]ation|api_?key|private_?key|access_?key|credential"
    r"|cookie|session|signature|\bauth\b|\bdsn\b|\bpin\b|\bcvc\b|\bcvv\b|\biban\b"
)
_AUTH_TEXT = re.compile(r"(?i)\b(bearer|basic)\s+[\w\-.~+/]{6,}=*")


def is_secret(key: str) -> bool:
    """`apiKey`, `X-API-Key` and `api_key` are one name."""
    snake = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", key).lower()
    return bool(_SECRET.search(re.sub(r"[\s.\-]+", "_", snake))) or bool(
        _SECRET.search(re.sub(r"[\s.\-_]+", " ", snake))
    )


def shape(value: Any) -> str:
    """Pretty JSON of keys and kinds: enough to see what a job was given, without the data."""
    return _text(_shape(value))


def values(value: Any) -> str:
    """Pretty JSON with the values; what a key calls secret is masked, whatever it holds."""
    return _text(_masked(value))


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {clean(key): _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        more = len(value) - SHOWN_ITEMS
        return [_shape(item) for item in value[:SHOWN_ITEMS]] + ([f"… {more:,} more …"] if more > 0 else [])
    if isinstance(value, str):
        return f"text of {len(value):,}"
    if isinstance(value, bool):
        return "true or false"
    return None if value is None else "number"


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            clean(key): MASK if is_secret(key) and item is not None else _masked(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], str) and is_secret(value[0]):
            return [value[0], MASK]  # a header as a pair
        return [_masked(item) for item in value]
    if isinstance(value, str):
        return _AUTH_TEXT.sub(rf"\1 {MASK}", clean(value))
    return value


def _text(value: Any) -> str:
    return visible(json.dumps(value, indent=2, ensure_ascii=False))
