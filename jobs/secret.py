"""Secret: names by which people call what nobody else should see."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"password|passwd|passphrase|pwd|secret|token|authori[sz]ation|api_?key|private_?key|access_?key|credential"
    r"|cookie|session|signature|\bauth\b|\bdsn\b|\bpin\b|\bcvc\b|\bcvv\b|\biban\b"
)


def is_secret(key: str) -> bool:
    """`apiKey`, `X-API-Key` and `api_key` are one name."""
    snake = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", key).lower()
    return bool(_SECRET.search(re.sub(r"[\s.\-]+", "_", snake))) or bool(
        _SECRET.search(re.sub(r"[\s.\-_]+", " ", snake))
    )
