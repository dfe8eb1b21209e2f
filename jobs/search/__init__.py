"""Searching jobs: one line of terms, always within a window, never longer than an operator waits."""

from __future__ import annotations

from jobs.search.compile import Query, compile_query
from jobs.search.find import Found, Place, find, read_place
from jobs.search.terms import SearchError, Term, parse

__all__ = ["Found", "Place", "Query", "SearchError", "Term", "compile_query", "find", "parse", "read_place"]
