"""The search line above a list of jobs: what was asked, what is wrong with it, and other windows for the same words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.http import QueryDict

from jobs.models import SavedView
from jobs.search import Place, Query, SearchError, Term, compile_query, parse, read_place
from jobs.search.terms import MAX_LENGTH

NOT_OURS = ("_changelist_filters", "_popup", "_to_field", "e")
ASKED = ("q", "after", "before")

SHIPPED = (
    ("Overdue now", "is:overdue due:-7d..now"),
    ("Failed, last 24 hours", "state:failed finished:last-24h"),
    ("Held now", "is:held due:-7d..now"),
    ("Running", "state:running due:-7d..now"),
    ("Running over 10 minutes", "ran:>10m state:running due:-7d..now"),
    ("Started late, last 24 hours", "late:>1m due:last-24h"),
    ("Retrying", "state:retryable due:-7d..now"),
    ("Due in the next hour", "due:next-1h"),
    ("Cancelled today", "state:cancelled finished:today"),
)
"""Views that everybody has."""
WINDOWS = (
    ("last hour", "last-1h"),
    ("today", "today"),
    ("yesterday", "yesterday"),
    ("tomorrow", "tomorrow"),
    ("last 7 days", "-7d..now"),
    ("next 7 days", "now..+7d"),
)


@dataclass(frozen=True)
class Problem:
    message: str
    hint: str = ""
    pointer: str = ""
    """The line with carets under what is wrong; empty when it is not about the line."""


class Search:
    """What the address asks for. `query` is None when it cannot be understood; then `problem` says why."""

    def __init__(self, asked: QueryDict, now: datetime, scope: Any, fallback: str = "") -> None:
        self.text = asked.get("q", "").strip() or fallback
        self.unknown = sorted(set(asked) - set(ASKED) - set(NOT_OURS))
        self.problem: Problem | None = None
        self.query: Query | None = None
        self.terms: list[Term] = []
        self.after: Place | None = None
        self.before: Place | None = None
        try:
            self.after, self.before = read_place(asked.get("after", "")), read_place(asked.get("before", ""))
            self.terms = parse(self.text)
            self.query = compile_query(self.text, now, scope=scope)
        except SearchError as error:
            shown = self.text[: MAX_LENGTH + 1]
            self.problem = Problem(error.message, error.hint, error.pointer(shown))
        except ValueError as error:
            self.problem = Problem(str(error))

    def is_valid(self) -> bool:
        return self.query is not None

    @property
    def by_end(self) -> bool:
        return self.query is not None and self.query.finished is not None

    @property
    def chips(self) -> list[tuple[str, str]]:
        """Each term, and the address without it."""
        return [
            (str(term), _address(" ".join(str(each) for each in self.terms if each is not term)))
            for term in self.terms
        ]

    @property
    def presets(self) -> list[tuple[str, str]]:
        """Links to other windows for the same words."""
        name = "finished" if self.by_end else "due"
        words = " ".join(str(term) for term in self.terms if term.name not in ("due", "finished"))
        return [(label, _address(f"{words} {name}:{text}".strip())) for label, text in WINDOWS]

    @property
    def link(self) -> str:
        """The same at any later time, for others: windows are absolute."""
        return _address(str(self.query)) if self.query else ""


def _address(line: str) -> str:
    return "?" + urlencode({"q": line})


def views(user: Any) -> list[SavedView]:
    """The user's own saved views and those that are shared, by name; a page's worth."""
    return list(SavedView.objects.filter(Q(owner_id=user.pk) | Q(shared=True))[:100])
