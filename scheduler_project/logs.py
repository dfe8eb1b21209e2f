"""Log records as single lines of key=value, with whatever fields the caller gave by `extra`."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_PLAIN = re.compile(r"[^\s=\"\\]+")
FIELD_KEPT = 8000
"""Characters of one field, its beginning and its end: an error may carry a row of the database, or a payload."""


class LineFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack"] = record.stack_info
        return " ".join(f"{name}={_quoted(value)}" for name, value in fields.items())


def _quoted(value: object) -> str:
    """As it is when it is one plain word, else in JSON's quotes: line ends and control characters escaped."""
    if isinstance(value, datetime):
        value = value.isoformat()
    elif isinstance(value, float):
        value = round(value, 6)
    text = str(value)
    if len(text) > FIELD_KEPT:
        half = FIELD_KEPT // 2
        text = f"{text[:half]} … {len(text) - 2 * half:,} characters … {text[-half:]}"
    return (
        text
        if _PLAIN.fullmatch(text) and text.isprintable()
        else json.dumps(text, ensure_ascii=not text.isprintable())
    )
