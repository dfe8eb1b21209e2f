"""The scheduler in Django's admin; the pages are in `jobs/console/`."""

from __future__ import annotations

from django.contrib import admin

from jobs.console.actions import OperatorActionAdmin
from jobs.console.cron import CronDefinitionAdmin
from jobs.console.holds import HoldAdmin
from jobs.console.jobs import JobAdmin
from jobs.console.owners import QueueAdmin, TenantAdmin
from jobs.console.processes import ProcessAdmin
from jobs.models import CronDefinition, Hold, Job, OperatorAction, Process, Queue, Tenant

admin.site.register(Job, JobAdmin)
admin.site.register(CronDefinition, CronDefinitionAdmin)
admin.site.register(Tenant, TenantAdmin)
admin.site.register(Queue, QueueAdmin)
admin.site.register(Process, ProcessAdmin)
admin.site.register(OperatorAction, OperatorActionAdmin)
admin.site.register(Hold, HoldAdmin)
