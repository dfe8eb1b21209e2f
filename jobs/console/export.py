"""Export: the rows of a list as CSV or JSON lines, sent while they are read; bounded, without payloads, recorded."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import StreamingHttpResponse
from django.utils import timezone

from jobs.clock import boottime
from jobs.search import Query, find
from jobs.search.find import Place, place_text
from jobs.search.guard import TooSlow
from jobs.text import scrub

PERMISSION = "jobs.export_job"
ROWS = 50_000
"""Most rows of one export."""
SECONDS = 60.0
"""Longest time that one reads."""
PAGE = 500
AT_ONCE = 2
"""Exports at the same time in one web process: they take a thread each."""
TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_places = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True)
class Cut:
    """Comes last where there is more: why it ended, and where to go on."""

    told: str
    following: str = ""


Columns = Mapping[str, Callable[[Any], Any]]
JOB: Columns = {
    "id": lambda job: str(job.pk),
    "state": lambda job: str(job.state),
    "type": lambda job: job.job_type,
    "tenant": lambda job: job.tenant.slug,
    "queue": lambda job: job.queue,
    "priority": lambda job: job.priority,
    "group": lambda job: job.group,
    "due_at": lambda job: job.due_at,
    "created_at": lambda job: job.created_at,
    "run_at": lambda job: job.run_at,
    "attempt": lambda job: job.attempt,
    "max_attempts": lambda job: job.max_attempts,
    "finished_at": lambda job: job.finished_at,
    "error": lambda job: job.error and scrub(job.error),
    "fingerprint": lambda job: job.fingerprint,
    "unique_key": lambda job: job.unique_key,
    "cron": lambda job: job.cron_id,
}


class Export:
    """Iterating sends it; `close` gives its place to the next one, also when nobody ever iterated."""

    def __init__(self, form: str, columns: Columns, rows: Iterable[Any]) -> None:
        self.form, self.columns, self.rows = form, columns, rows
        self._open = True

    def __iter__(self) -> Iterator[str]:
        lines = self._csv() if self.form == "csv" else self._jsonl()
        return iter(lines)

    def close(self) -> None:
        if self._open:
            self._open = False
            _places.release()

    def _csv(self) -> Iterator[str]:
        write = csv.writer(_Line()).writerow
        yield write(self.columns)
        for row in self.rows:
            if isinstance(row, Cut):
                yield write(["#", row.told, row.following])
            else:
                yield write([_cell(value(row)) for value in self.columns.values()])

    def _jsonl(self) -> Iterator[str]:
        count, cut = 0, None
        for row in self.rows:
            if isinstance(row, Cut):
                cut = row
            else:
                count += 1
                yield _json({name: _plain(value(row)) for name, value in self.columns.items()}) + "\n"
        end: dict[str, Any] = {"rows": count, "complete": cut is None}
        if cut:
            end |= {"told": cut.told, "next": cut.following}
        yield _json({"end": end}) + "\n"


def response(name: str, form: str, columns: Columns, rows: Iterable[Any]) -> StreamingHttpResponse | None:
    """The download. None: as many as can be at once are under way."""
    if not _places.acquire(blocking=False):
        return None
    sent = StreamingHttpResponse(Export(form, columns, rows), content_type=TYPES[form])
    sent["Content-Disposition"] = f'attachment; filename="{name}-{timezone.now():%Y%m%dT%H%M%SZ}.{form}"'
    return sent


def found(query: Query) -> Iterator[Any]:
    """The jobs of a search, latest first, page by page, each in a short transaction."""
    place: Place | None = None
    sent, until = 0, boottime() + SECONDS
    while True:
        try:
            page = find(query, after=place, size=min(PAGE, ROWS - sent))
        except TooSlow:
            yield Cut("the database is too slow", place_text(place) if place else "")
            return
        yield from page.jobs
        sent, place = sent + len(page.jobs), page.older
        if place is None:
            return
        if sent >= ROWS or boottime() > until:
            why = f"{ROWS:,} rows are the most" if sent >= ROWS else f"{SECONDS:g} seconds are the longest"
            yield Cut(f"{why}: there are more", place_text(place))
            return


class _Line:
    """What a csv.writer writes into: the line is its answer."""

    def write(self, text: str) -> str:
        return text


def _cell(value: Any) -> Any:
    """No cell is a formula to a spreadsheet."""
    plain = _plain(value)
    if isinstance(plain, dict | list):
        plain = _json(plain)
    return f"'{plain}" if isinstance(plain, str) and plain.startswith(_FORMULA) else plain


def _plain(value: Any) -> Any:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
