"""How the server would read what operators search for: nodes, relations and indexes of its plans, without a value."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from jobs import clock
from jobs.search import compile_query
from jobs.search.sources import sources

LINES = ("due:today", "state:queued", "state:failed finished:yesterday..now", "is:overdue")
_DAY = re.compile(r"_*\d{4}_\d\d_\d\d")


def plans(using: str = "default") -> dict[str, Any]:
    """By the line of the search: for each kind of node how many there are, and the most rows and cost."""
    now = clock.now(using)
    found = {}
    for line in LINES:
        query = compile_query(line, now)
        nodes = [
            node
            for place in sources(query, query.due, using)
            for node in _nodes(json.loads(place.order_by()[:50].explain(format="json"))[0]["Plan"])
        ]
        found[line] = _figures(nodes)
    return found


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from _nodes(each)


def _figures(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The leaves of all days are one line."""
    alike: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for node in nodes:
        relation, index = (_DAY.sub("", node.get(name, "")) for name in ("Relation Name", "Index Name"))
        alike[node["Node Type"], relation, index].append(node)
    return [
        {
            "node": kind, "of": relation, "by": index, "times": len(found),
            "rows": max(node["Plan Rows"] for node in found),
            "cost": max(node["Total Cost"] for node in found),
        }
        for (kind, relation, index), found in alike.items()
    ]  # fmt: skip
