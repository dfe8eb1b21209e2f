"""Cron definitions declared in code (`@cron`) become rows: additively, so that two deployments do not delete each
other's. An operator's edit of such a row stays until the declaration itself changes."""

from __future__ import annotations

import logging
from dataclasses import asdict, fields
from datetime import timedelta
from typing import Any

from django.db import DataError, transaction

from jobs import clock
from jobs.defining import check_job, check_rule
from jobs.errors import SchedulerError
from jobs.models import CronDefinition
from jobs.registry import CronDeclaration, JobType, registry
from jobs.tenants import tenant_ids

logger = logging.getLogger(__name__)


def sync(using: str = "default") -> int:
    """Write what is new or was changed in code; returns how many. One that is refused stands in nobody's way."""
    written = 0
    for job_type in registry.types():
        for declaration in job_type.crons:
            try:
                written += _sync(job_type, declaration, using)
            except (SchedulerError, DataError, TypeError, ValueError) as error:
                told = {"type": job_type.name, "declared": declaration.name, "error": str(error)}
                logger.error("declared cron is refused", extra=told)
    return written


def overridden(definition: CronDefinition) -> list[str]:
    """What of a declared definition is not as its declaration says: an operator changed it."""
    says: dict[str, Any] = definition.declared or {}
    names = [each.name for each in fields(CronDeclaration) if each.name not in ("name", "tenant")]
    return [name for name in names if name in says and _plain(getattr(definition, name)) != says[name]]


def _sync(job_type: JobType, declaration: CronDeclaration, using: str) -> bool:
    rule = {name: value for name, value in asdict(declaration).items() if name not in ("name", "tenant")}
    rule["job_type"] = job_type.name
    says = {name: _plain(value) for name, value in asdict(declaration).items()}
    tenant_id = tenant_ids([declaration.tenant], using)[declaration.tenant]
    with transaction.atomic(using):
        definition, created = CronDefinition.objects.using(using).get_or_create(
            tenant_id=tenant_id,
            name=declaration.name or job_type.name,
            defaults={
                **rule,
                "declared": says,
                "source": job_type.origin[:100],
            },
        )
        if created or definition.declared == says:
            return created
        for field, value in rule.items():
            setattr(definition, field, value)
        check_rule(definition, clock.now(using))
        check_job(definition, clock.now(using))
        changed = (
            CronDefinition.objects.using(using)
            .filter(pk=definition.pk, declared=definition.declared)
            .update(**rule, declared=says)
        )
    return bool(changed)


def _plain(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value
