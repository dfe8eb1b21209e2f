"""What an operator does at the command line: ask why a job waits, cancel and retry jobs, pause and resume, set limits,
sort errors, mark a deploy.

Each is recorded like a click in the console, under the name of the account. Exit status: 0 done, 1 refused or nothing
changed, 2 a wrong command line.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs import clock, holds, limiting, operator, undoing
from jobs.errors import SchedulerError
from jobs.management import arguments, operations
from jobs.models import Hold, HoldScope, Job, Queue, Tenant, TenantQueueLimit, TriageState
from jobs.registry import registry
from jobs.triage import NEW

ABSENT: dict[str, Any] = {"default": argparse.SUPPRESS}
"""None means unlimited, so what is not given is not there."""
Answer = tuple[dict[str, Any], list[str]]
"""As JSON, and as lines to read."""


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

        def verb(name: str, text: str, *, audited: bool = True) -> CommandParser:
            made: CommandParser = verbs.add_parser(name, help=text, description=text)
            made.add_argument("--json", action="store_true", help="answer as one JSON object")
            made.add_argument(
                "--database",
                type=arguments.database,
                default="default",
                help="alias of the database to work on",
            )
            if audited:
                made.add_argument("--reason", default="", help="kept in the audit")
            return made

        why = verb("why", "why this job has not run yet", audited=False)
        why.add_argument("id", type=arguments.job_id)
        for name in ("cancel", "retry"):
            made = verb(name, f"{name} these jobs")
            made.add_argument("ids", nargs="+", type=arguments.job_id, metavar="id")
        pause = verb("pause", "keep jobs from starting; what runs goes on")
        _target(pause)
        pause.add_argument(
            "--until", type=arguments.moment, help="resume by itself: 2026-12-31T18:00Z, 30m, 2h, 1d"
        )
        resume = verb("resume", "end the holds of a target")
        _target(resume)
        resume.add_argument("--rate", type=arguments.limit, help="jobs a second at which the backlog starts")
        limits = verb(
            "limits", "show limits and holds, or set limits: a number, 0 (none may run) or none (unlimited)"
        )
        limits.add_argument("--tenant")
        limits.add_argument("--queue")
        limits.add_argument("--max-running", **ABSENT, type=arguments.limit)
        limits.add_argument(
            "--weight", **ABSENT, type=arguments.limit, help="share of the claims, of a tenant"
        )
        limits.add_argument(
            "--rate", **ABSENT, type=arguments.rate, help="starts, as 10/second, 100/minute, 600/hour"
        )
        limits.add_argument("--burst", **ABSENT, type=arguments.limit, help="starts that may be saved up")
        limits.add_argument("--noisy-share", **ABSENT, type=arguments.share, help="0.01 to 1, of a queue")
        limits.add_argument(
            "--undo",
            type=arguments.positive,
            metavar="ACTION",
            help="take back this change, by its number in the audit",
        )
        operations.add_arguments(verb("operations", "what bulk operations are at; pause, resume or stop one"))
        triage = verb(
            "triage", "say of a group of errors that it is known, ignored or mended; new: take it back"
        )
        triage.add_argument("fingerprint", help="of the errors, as the console and failed jobs show it")
        triage.add_argument("state", choices=(NEW, *TriageState.values))
        triage.add_argument("--owner", default="", help="who takes care of it")
        triage.add_argument(
            "--until", type=arguments.moment, help="then it is new again: 2026-12-31T18:00Z, 2h, 7d"
        )
        deploy = verb("deploy", "mark on the charts that something new runs from now on")
        deploy.add_argument("name", help="version, tag or commit")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        act: Callable[[dict[str, Any]], Answer] = getattr(self, f"_{verb}")
        try:
            found, lines = act(options)
        except SchedulerError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            json.dumps(found, default=str, ensure_ascii=False) if options["json"] else "\n".join(lines)
        )
        if found.get("changed") == 0 and not found.get("requested"):
            raise CommandError("nothing was changed")

    def _why(self, options: dict[str, Any]) -> Answer:
        job = Job.objects.using(options["database"]).filter(pk=options["id"]).first()
        if job is None:
            raise CommandError(f"there is no job {options['id']}: it never was, or its day is gone")
        said = job.why()
        return {"job": str(job.pk), "state": str(job.state), "why": str(said)}, [str(said)]

    def _operations(self, options: dict[str, Any]) -> Answer:
        return operations.answer(options)

    def _cancel(self, options: dict[str, Any]) -> Answer:
        return _act("cancel", options)

    def _retry(self, options: dict[str, Any]) -> Answer:
        return _act("retry", options)

    def _pause(self, options: dict[str, Any]) -> Answer:
        scope, key = options["scope"], options["key"]
        made = operator.pause(
            operator.Shell(),
            scope,
            key,
            reason=options["reason"],
            until=_at(options),
            using=options["database"],
        )
        if scope == HoldScope.TYPE and registry.get(key) is None:
            self.stderr.write(f"warning: no type {key!r} is registered here")
        return _hold(made), [
            f"paused {made}" + (f" until {made.until:%Y-%m-%d %H:%M:%S %Z}" if made.until else "")
        ]

    def _resume(self, options: dict[str, Any]) -> Answer:
        scope, key = options["scope"], options["key"]
        found = list(holds.standing(options["database"]).filter(scope=scope, key=key))
        if not found:
            raise CommandError(f"nothing holds {' '.join(filter(None, (scope, key)))}")
        lifted = [
            operator.resume(
                operator.Shell(),
                each,
                rate=options["rate"],
                reason=options["reason"],
                using=options["database"],
            )
            for each in found
        ]
        return {"resumed": [_hold(each) for each in lifted]}, [f"resumed {each}" for each in lifted]

    def _limits(self, options: dict[str, Any]) -> Answer:
        tenant, queue, using = options["tenant"], options["queue"], options["database"]
        changes, user, reason = _changes(options), operator.Shell(), options["reason"]
        if options["undo"] is not None:
            if changes or tenant is not None or queue is not None:
                raise CommandError("--undo takes nothing beside it: the change says what it was of")
            row, action = undoing.undo(user, options["undo"], reason, using)
        elif changes:
            row, action = operator.limit(
                user, changes, tenant=tenant, queue=queue, reason=reason, using=using
            )
        else:
            return _shown(tenant, queue, using)
        if warning := limiting.warning_of(row):
            self.stderr.write(f"warning: {warning}")
        return {"action": action.pk, **_limited(row)}, [f"{_line(row)} (action {action.pk})"]

    def _triage(self, options: dict[str, Any]) -> Answer:
        row = operator.triage(
            operator.Shell(), options["fingerprint"], options["state"], owner=options["owner"],
            note=options["reason"], until=_at(options), using=options["database"],
        )  # fmt: skip
        found = {"fingerprint": options["fingerprint"], "state": options["state"], "until": row and row.until}
        return found, [f"errors {options['fingerprint']} are {options['state']}"]

    def _deploy(self, options: dict[str, Any]) -> Answer:
        made = operator.deploy(operator.Shell(), options["name"], options["reason"], options["database"])
        return {"action": made.pk, "deploy": made.target["deploy"]}, [f"marked {made.target['deploy']}"]


def _at(options: dict[str, Any]) -> datetime | None:
    """The time of --until, which may be so long from now."""
    until: datetime | timedelta | None = options["until"]
    return clock.now(options["database"]) + until if isinstance(until, timedelta) else until


def _target(parser: CommandParser) -> None:
    parser.add_argument("scope", choices=HoldScope.values)
    parser.add_argument("key", nargs="?", default="", help="name of the tenant, queue, type or group")


def _act(verb: str, options: dict[str, Any]) -> Answer:
    ids: Sequence[UUID] = options["ids"]
    if len(set(ids)) > operator.LIMIT:
        raise CommandError(f"{len(set(ids))} jobs are named; one command takes at most {operator.LIMIT}")
    action, report = operator.act(operator.Shell(), verb, ids, options["reason"], options["database"])
    found = {
        "action": action.pk,
        "changed": report.changed,
        "requested": report.requested,
        "skipped": dict(report.skipped),
    }
    return found, [report.describe(operator.COMMANDS[verb].done)]


def _changes(options: dict[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {
        name: options[name] for name in ("max_running", "weight", "burst", "noisy_share") if name in options
    }
    if "rate" in options:
        changes["rate"], per = options["rate"]
        if per is not None:
            changes["rate_per"] = per
        if changes["rate"] is None:
            changes.setdefault("burst", None)
    return changes


def _hold(hold: Hold) -> dict[str, Any]:
    names = ("id", "scope", "key", "reason", "by", "since", "until", "drain")
    return {name: getattr(hold, name) for name in names}


def _limited(row: limiting.Limited) -> dict[str, Any]:
    names: dict[str, Any] = {}
    if isinstance(row, TenantQueueLimit):
        names = {"tenant": row.tenant.slug, "queue": row.queue}
    else:
        names = {"tenant": row.slug} if isinstance(row, Tenant) else {"queue": row.name}
    return names | {field: getattr(row, field) for field in limiting.FIELDS[type(row)]}


def _line(row: limiting.Limited) -> str:
    names = "tenant", "queue"
    shown = _limited(row)
    who = " in ".join(f"{name} {shown[name]}" for name in names if name in shown)
    if shown.get("rate") is None:
        shown.pop("rate_per", None)
    values = [
        f"{name} {value}" for name, value in shown.items() if name not in names and value not in (None, "")
    ]
    return f"{who}: {', '.join(values) or 'unlimited'}"


def _shown(tenant: str | None, queue: str | None, using: str) -> Answer:
    tenants = Tenant.objects.using(using).filter(retired_at=None)
    queues = Queue.objects.using(using).all()
    pairs = TenantQueueLimit.objects.using(using).select_related("tenant")
    if tenant is not None:
        tenants, pairs = tenants.filter(slug=tenant), pairs.filter(tenant__slug=tenant)
        if not tenants.exists():
            raise CommandError(f"there is no tenant {tenant!r}")
    if queue is not None:
        queues, pairs = queues.filter(name=queue), pairs.filter(queue=queue)
    rows: list[limiting.Limited] = []
    rows += tenants if queue is None or tenant is not None else []
    rows += queues if tenant is None or queue is not None else []
    rows += pairs
    standing = [each for each in holds.standing(using) if tenant is None or each.key == tenant]
    found = {"limits": [_limited(row) for row in rows], "holds": [_hold(each) for each in standing]}
    lines = [_line(row) for row in rows] + [f"held: {each} by {each.by}: {each.reason}" for each in standing]
    return found, lines or ["no limits, no holds"]
