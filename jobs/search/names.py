"""What the names in a line stand for: the tenants of `tenant:`, and whatever a value without a term is called."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext, suppress
from typing import NamedTuple
from uuid import UUID

from django.db import connections, router

from jobs.ids import due_of
from jobs.models import Tenant
from jobs.registry import registry
from jobs.search.guard import TooSlow, bounded
from jobs.search.terms import MAX_VALUES, SearchError, Term, refuse_second
from jobs.sql import load


class Named(NamedTuple):
    """What bears a name."""

    jobs: Sequence[UUID] = ()
    """That hold it as their key; no more than one beyond MAX_VALUES."""
    tenant: int | None = None
    queue: bool = False


def look_up(terms: Sequence[Term], scope: Collection[int] | None) -> tuple[list[Term], dict[str, Named]]:
    """The terms, each with its name, and what bears the names of tenants and keys among them; by one statement at most.
    `scope`: as of compile_query."""
    words = {term.values[0] for term in terms if not term.name and not id_of(term.values[0])}
    slugs = {value for term in terms if term.name == "tenant" for value in term.values}
    keys = {value for term in terms if term.name == "key" for value in term.values}
    known = _read(words | slugs | keys, words | keys, scope) if words | slugs | keys else {}
    named = list[Term]()
    for term in terms:
        meant = term if term.name else _meant(term, known)
        refuse_second(named, meant)
        named.append(meant)
    return named, known


def id_of(value: str) -> UUID | None:
    """The id of a job that this is, if it is one."""
    with suppress(ValueError, OverflowError):
        found = UUID(value.strip())
        due_of(found)
        return found
    return None


def _read(names: Collection[str], keys: Collection[str], scope: Collection[int] | None) -> dict[str, Named]:
    values = {
        "names": sorted(names),
        "keys": sorted(keys),
        "scope": None if scope is None else sorted(scope),
        "most": MAX_VALUES + 1,
    }
    using = router.db_for_read(Tenant)
    try:
        with bounded(using) if keys else nullcontext(), connections[using].cursor() as cursor:
            cursor.execute(load("names"), values)
            return {name: Named(*found) for name, *found in cursor.fetchall()}
    except TooSlow:
        told = "There are so many keys that looking these up was stopped."
        raise SearchError(
            told, 0, 1, "Write the id of a job, or type:, tenant: or queue: before a name"
        ) from None


def _meant(term: Term, known: dict[str, Named]) -> Term:
    """An id, or whatever bears exactly this name. More than one thing is asked back."""
    (value,) = term.values
    if id_of(value):
        return Term("id", (value,), term.start, term.end)
    found = _bearers(value, known.get(value, Named()))
    if len(found) == 1:
        return Term(found[0], (value,), term.start, term.end)
    if found:
        written = [str(Term(name, (value,), 0, 0)) for name in found]
        raise SearchError(
            f"“{value}” names several things.", term.start, term.end, f"Write {' or '.join(written)}"
        )
    raise SearchError(
        f"“{value}” is no job id, and no key, type, tenant or queue has this name.",
        term.start,
        term.end,
        "For a group write group:…",
    )


def _bearers(value: str, named: Named) -> list[str]:
    there = {
        "key": bool(named.jobs),
        "type": value in registry.names(),
        "tenant": named.tenant is not None,
        "queue": named.queue or value in {each.queue for each in registry.types()},
    }
    found = [name for name, is_there in there.items() if is_there]
    return ["type"] if found == ["type", "queue"] else found  # a type's own queue bears its name
