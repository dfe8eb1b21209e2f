"""Entries of a crontab <-> cron definitions of the type shell.run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db import transaction

from jobs.cron.grammar import ALIASES
from jobs.crontab import Entry, unwritable
from jobs.errors import CronError, InvalidJob
from jobs.models import CronDefinition
from jobs.slugs import slug_of
from jobs.tenants import tenant_ids

JOB_TYPE = "shell.run"


@dataclass
class Import:
    tenant: str
    new: list[CronDefinition] = field(default_factory=list)
    known: list[CronDefinition] = field(default_factory=list)
    """Of an earlier import of the same lines: left alone."""
    refused: list[tuple[Entry, str]] = field(default_factory=list)


def prepare(
    entries: Iterable[Entry], *, name: str, timezone: str, tenant: str = "default", using: str = "default"
) -> Import:
    """Definitions that are checked and not stored. `timezone`: where the file itself names none. ValueError for a tenant
    that cannot be one."""
    found = Import(slug_of(tenant))
    stored = set(
        CronDefinition.objects.using(using)
        .filter(tenant__slug=found.tenant, job_type=JOB_TYPE)
        .values_list("name", flat=True)
    )
    for entry in entries:
        definition = _definition(entry, name, entry.zone or timezone)
        try:
            definition.check_all(using)
        except (CronError, InvalidJob) as error:
            found.refused.append((entry, str(error)))
            continue
        if definition.name in stored:
            found.known.append(definition)
        else:
            stored.add(definition.name)
            found.new.append(definition)
    return found


def store(found: Import, using: str = "default") -> int:
    """All of them or none."""
    tenant_id = tenant_ids([found.tenant], using)[found.tenant]
    for definition in found.new:
        definition.tenant_id = tenant_id
    with transaction.atomic(using):
        return len(CronDefinition.objects.using(using).bulk_create(found.new))


def export(definitions: Iterable[CronDefinition]) -> tuple[list[Entry], list[str]]:
    """What a crontab can say, ordered so that few environment lines are needed, and why the rest is left out."""
    entries, left = list[Entry](), list[str]()
    for definition in definitions:
        if reason := _why_not(definition):
            left.append(f"{definition.name}: {reason}")
        else:
            entries.append(_entry(definition))
    # A crontab cannot unset a variable: those with few come first.
    entries.sort(
        key=lambda each: (len(each.environment), sorted(each.environment.items()), each.zone, each.jitter)
    )
    return entries, left


def _definition(entry: Entry, name: str, timezone: str) -> CronDefinition:
    payload = {
        "command": entry.command,
        "stdin": entry.stdin,
        "environment": entry.environment,
        "user": entry.user,
    }
    says = (entry.expression, timezone, *map(str, payload.values()))
    digest = hashlib.sha256("\0".join(says).encode()).hexdigest()[:8]
    return CronDefinition(
        name=f"{name}: {entry.command[:80]} [{digest}]",
        expression=entry.expression,
        timezone=timezone,
        jitter=entry.jitter,
        job_type=JOB_TYPE,
        payload={key: value for key, value in payload.items() if value},
        max_attempts=1,
        source=f"{name}:{entry.line}"[-100:],
    )


def _why_not(definition: CronDefinition) -> str:
    if definition.job_type != JOB_TYPE:
        return f"it is of type {definition.job_type}, not {JOB_TYPE}"
    if not definition.expression:
        return f"a crontab cannot say {definition.when}"
    return next((f"other crons do not know {what}" for what in unwritable(_expression(definition))), "")


def _entry(definition: CronDefinition) -> Entry:
    payload = definition.payload
    return Entry(
        line=0,
        expression=_expression(definition),
        command=payload.get("command", ""),
        stdin=payload.get("stdin", ""),
        user=payload.get("user", ""),
        zone=definition.timezone,
        jitter=definition.jitter,
        environment=payload.get("environment", {}),
    )


def _expression(definition: CronDefinition) -> str:
    """As the definition says it where other crons read that the same way, else as sorted lists."""
    text = definition.expression.strip()
    if text.lower() in ALIASES:
        return text.lower()
    plain = all(character in "0123456789*,-/ \t" for character in text) and "?" not in text
    return " ".join(text.split()) if plain and not _wraps(text) else _canonical(definition)


def _canonical(definition: CronDefinition) -> str:
    return str(getattr(definition.rule(), "canonical", definition.expression))


def _wraps(text: str) -> bool:
    """22-3, or 5/15: other crons refuse them."""
    for part in text.split():
        for item in part.split(","):
            body, slash, _ = item.partition("/")
            first, dash, last = body.partition("-")
            if (dash and int(first) > int(last)) or (slash and not dash and body != "*"):
                return True
    return False
