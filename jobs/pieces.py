"""Pieces: the jobs of one call, checked a piece at a time; the next one while the server writes the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from jobs.errors import InvalidJob
from jobs.ids import IdRun
from jobs.newjob import Frame, NewJob, Row, prepare

PIECE_ROWS, PIECE_SIZE = 5_000, 8 * 2**20
"""Jobs, or characters of their payloads, that are held before they are written."""
STEP = 250
"""Jobs that are checked between two pieces of work of the server."""


class Pieces:
    def __init__(self, jobs: Iterable[NewJob], now: datetime) -> None:
        self._in_memory = isinstance(jobs, list | tuple)
        self._jobs = enumerate(jobs)
        self._ids, self._frame = IdRun(), Frame(now)
        self._rows: list[Row] = []
        self._size = 0
        self._over = False

    def __iter__(self) -> Iterator[list[Row]]:
        """The checked jobs, in their order. InvalidJob names the index of the first wrong one."""
        while True:
            while not self._ready:
                self._check()
            if not self._rows:
                return
            rows, self._rows, self._size = self._rows, [], 0
            yield rows

    def meanwhile(self) -> None:
        """Go on with the next piece while the server writes. Only with what is in memory: an iterator may ask the
        database itself, on the very connection that is busy."""
        if self._in_memory and not self._ready:
            self._check()

    @property
    def _ready(self) -> bool:
        return self._over or len(self._rows) >= PIECE_ROWS or self._size >= PIECE_SIZE

    def _check(self) -> None:
        until = min(len(self._rows) + STEP, PIECE_ROWS)
        for index, new in islice(self._jobs, until - len(self._rows)):
            row = self._prepare(index, new)
            self._rows.append(row)
            self._size += len(row.payload)
            if self._size >= PIECE_SIZE:
                return
        self._over = len(self._rows) < until

    def _prepare(self, index: int, new: NewJob) -> Row:
        if not isinstance(new, NewJob):
            raise InvalidJob("job", f"{new!r} is not a NewJob", index=index)
        try:
            return prepare(new, self._frame, self._ids)
        except InvalidJob as error:
            error.index = index
            error.args = (f"jobs[{index}].{error}",)
            raise
