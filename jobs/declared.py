"""Cron definitions declared in code (`@cron`) become rows: additively, so that two deployments do not delete each
other's. An operator's edit of such a row stays until the declaration itself changes."""

from __future__ import annotations

from dataclasses import asdict

from django.db import transaction

from jobs.models import CronDefinition
from jobs.registry import CronDeclaration, JobType, registry
from jobs.tenants import tenant_ids


def sync(using: str = "default") -> int:
    """Write what is new or was changed in code; returns how many. CronError when a declared rule is wrong."""
    written = 0
    for job_type in registry.types():
        for declaration in job_type.crons:
            written += _sync(job_type, declaration, using)
    return written


def _sync(job_type: JobType, declaration: CronDeclaration, using: str) -> bool:
    says = asdict(declaration)
    rule = {
        "expression": declaration.expression,
        "timezone": declaration.timezone,
        "dst": declaration.dst,
        "payload": declaration.payload,
        "job_type": job_type.name,
    }
    tenant_id = tenant_ids([declaration.tenant], using)[declaration.tenant]
    handler = job_type.handler
    with transaction.atomic(using):
        definition, created = CronDefinition.objects.using(using).get_or_create(
            tenant_id=tenant_id,
            name=declaration.name or job_type.name,
            defaults={
                **rule,
                "declared": says,
                "source": f"{handler.__module__}.{handler.__qualname__}"[:100],
            },
        )
        if created or definition.declared == says:
            return created
        changed = (
            CronDefinition.objects.using(using)
            .filter(pk=definition.pk, declared=definition.declared)
            .update(**rule, declared=says)
        )
    return bool(changed)
