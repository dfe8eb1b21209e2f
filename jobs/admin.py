"""The scheduler in Django's admin; the pages are in `jobs/console/`."""

from __future__ import annotations

from django.contrib import admin

from jobs.console.actions import OperatorActionAdmin
from jobs.console.cron import CronDefinitionAdmin
from jobs.console.holds import HoldAdmin
from jobs.console.jobs import JobAdmin
from jobs.console.members import TenantMemberAdmin
from jobs.console.operations import OperationAdmin
from jobs.console.owners import QueueAdmin, TenantAdmin
from jobs.console.processes import ProcessAdmin
from jobs.models import (
    CronDefinition,
    Hold,
    Job,
    Operation,
    OperatorAction,
    Process,
    Queue,
    Tenant,
    TenantMember,
)

admin.site.register(Job, JobAdmin)
admin.site.register(CronDefinition, CronDefinitionAdmin)
admin.site.register(Tenant, TenantAdmin)
admin.site.register(Queue, QueueAdmin)
admin.site.register(Process, ProcessAdmin)
admin.site.register(Operation, OperationAdmin)
admin.site.register(OperatorAction, OperatorActionAdmin)
admin.site.register(Hold, HoldAdmin)
admin.site.register(TenantMember, TenantMemberAdmin)
