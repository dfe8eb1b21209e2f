"""What may be a name: of a tenant, text of any script, of one spelling for what looks the same; of all else, text that
is shown as it is."""

from __future__ import annotations

import unicodedata
from typing import Any

from jobs.errors import describe

LONGEST = 100
_JOINERS = str.maketrans("", "", "\u200c\u200d")
"""Unprintable by themselves, and part of how some scripts are written."""


def name_of(value: Any, longest: int = LONGEST) -> str:
    """The same, when it may name a type, a queue, a group or a key. ValueError says what is wrong with it."""
    if not isinstance(value, str):
        raise ValueError(f"{describe(value)} is not text")
    if not 0 < len(value) <= longest:
        raise ValueError(f"has {len(value)} characters; 1 to {longest} are allowed")
    if value != value.strip() or not value.isprintable():
        raise ValueError(f"{describe(value)} begins or ends with white space or has unprintable characters")
    return value


def slug_of(value: Any) -> str:
    """The slug as it is stored, in Unicode's normal form C. ValueError says what is wrong with it."""
    if not isinstance(value, str):
        raise ValueError(f"{describe(value)} is not text")
    slug = unicodedata.normalize("NFC", value)
    if not 0 < len(slug) <= LONGEST:
        raise ValueError(f"has {len(slug)} characters; 1 to {LONGEST} are allowed")
    if slug != slug.strip() or not (seen := slug.translate(_JOINERS)) or not seen.isprintable():
        raise ValueError(f"{describe(value)} begins or ends with white space or has unprintable characters")
    return slug
