"""`jobs operations`: what the bulk operations are at, and pause, resume and stop from a shell."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from jobs import operations, operator
from jobs.management.arguments import positive
from jobs.models import Operation

SHOWN = 20
CONTROLS = {"pause": operations.pause, "resume": operations.resume, "stop": operations.stop}


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("action", choices=("list", "show", *CONTROLS))
    parser.add_argument("number", nargs="?", type=positive, help="of the operation; not for list")


def answer(options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """As JSON, and as lines to read. OperationRefused says why nothing was changed."""
    action, number, using = options["action"], options["number"], options["database"]
    if action == "list":
        if number is not None:
            raise CommandError("list takes no number; for one operation say: show NUMBER")
        found = list(Operation.objects.using(using).all()[:SHOWN])
        return {"operations": [_told(each) for each in found]}, [_line(each) for each in found] or ["none"]
    if number is None:
        raise CommandError(f"{action} which operation? Say its number; list shows them")
    if action == "show":
        one = Operation.objects.using(using).filter(pk=number).first()
        if one is None:
            raise CommandError(f"there is no operation {number}")
    else:
        one = CONTROLS[action](operator.Shell(), number, options["reason"], using)
    return {"operation": _told(one)}, [_line(one), f"  {one.query}", *([f"  {one.note}"] if one.note else [])]


def _told(operation: Operation) -> dict[str, Any]:
    names = (
        "id", "verb", "query", "arguments", "state", "note", "reason", "author_name", "expected", "expected_how", "looked",
        "changed", "requested", "skipped", "rate", "ceiling", "created_at", "started_at", "heartbeat_at", "ended_at",
    )  # fmt: skip
    return {name: getattr(operation, name) for name in names}


def _line(operation: Operation) -> str:
    expected = "?" if operation.expected is None else f"{operation.expected:,}"
    mark = "" if operation.expected_how == "exact" else "about "
    done = f"{operation.changed + operation.requested:,} of {mark}{expected} changed"
    left = sum(operation.skipped.values())
    more = f", {left:,} left alone" if left else ""
    return f"{operation.pk} {operation.verb}: {operation.state}, {done}{more}; by {operation.author_name}: {operation.reason}"
