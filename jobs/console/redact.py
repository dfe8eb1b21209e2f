"""Payloads and results on a page: their shape by default; on demand their values, never those of secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from jobs.console.show import clean, visible
from jobs.secret import is_secret

MASK = "••• hidden •••"
SHOWN_ITEMS = 3
"""Of a long list the shape shows so many items."""

_AUTH_TEXT = re.compile(r"(?i)\b(bearer|basic)\s+[\w\-.~+/]{6,}=*")


def shape(value: Any, shown: Sequence[str] = ()) -> str:
    """Pretty JSON of keys and kinds: enough to see what a job was given, without the data. What lies at a path of `shown`
    (`order.id`, `items.*.sku`) comes with its values, but for secrets."""
    return _text(_shape(value, [path.split(".") for path in shown]))


def values(value: Any) -> str:
    """Pretty JSON with the values; what a key calls secret is masked, whatever it holds."""
    return _text(_masked(value))


def _shape(value: Any, shown: Sequence[list[str]]) -> Any:
    if [] in shown:
        return _masked(value)
    if isinstance(value, dict):
        return {
            clean(key): _shape(item, [] if is_secret(key) else _below(shown, key))
            for key, item in value.items()
        }
    if isinstance(value, list):
        more = len(value) - SHOWN_ITEMS
        items = [_shape(item, _below(shown, str(n))) for n, item in enumerate(value[:SHOWN_ITEMS])]
        return items + ([f"… {more:,} more …"] if more > 0 else [])
    if isinstance(value, str):
        return f"text of {len(value):,}"
    if isinstance(value, bool):
        return "true or false"
    return None if value is None else "number"


def _below(shown: Sequence[list[str]], key: str) -> list[list[str]]:
    """What of the paths is left below this key."""
    return [path[1:] for path in shown if path[0] in (key, "*")]


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
