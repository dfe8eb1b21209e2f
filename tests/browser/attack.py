"""Rows whose every text is an attack, and the pages that show them."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.utils.http import urlencode

from jobs.models import CronDefinition, Job, OperatorAction, Process, Queue, Tenant, Triage
from jobs.results import Failed
from jobs.text import ErrorText
from tests.browser.world import hold
from tests.factories import Connection, claim, finish, process, schedule

ATTACK = "<img src=x onerror=window.pwned=1></script><script>window.pwned=1</script>\"'><svg/onload=window.pwned=1>"


def plant(connection: Connection, user: User) -> list[str]:
    name = ATTACK[:100]
    job = schedule(
        "mail.send", {name: ATTACK}, tenant=name, queue=name, group=name, unique_key=ATTACK, max_attempts=1
    )
    worker = process(connection)
    text = ErrorText(ATTACK, ATTACK, ATTACK, ATTACK[:16])
    finish(connection, claim(connection, job, worker), Failed(text, timedelta()))
    Process.objects.filter(pk=worker).update(host=ATTACK, queues=[name], types=[name])
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_job SET job_type = %s, concurrency_key = %s", [name, ATTACK])
    definition = CronDefinition.objects.create(
        name=ATTACK, tenant=job.tenant, expression="* * * * *", job_type="mail.send", note=ATTACK, source=name
    )
    queue = Queue.objects.create(name=name)
    action = OperatorAction.objects.create(
        verb=ATTACK[:20],
        actor_name=ATTACK,
        reason=ATTACK,
        skipped={ATTACK: 1},
        target={"jobs": [ATTACK], ATTACK: 1},
    )
    Triage.objects.create(fingerprint=ATTACK[:16], state="known", owner=ATTACK, note=ATTACK, by=ATTACK)
    OperatorAction.objects.create(verb="deploy", actor_name="x", target={"deploy": name})
    hold("queue", name)
    tenant = Tenant.objects.get(slug=name)
    base, named = "/admin/jobs", urlencode({"name": name})
    return [
        f"{base}/", f"{base}/job/", f"{base}/job/failed/", f"{base}/job/errors/", f"{base}/job/forecast/",
        f"{base}/job/waiting/", f"{base}/job/errors/triage/?{urlencode({'fingerprint': ATTACK[:16]})}",
        f"{base}/job/types/", f"{base}/job/types/one/?{named}", f"{base}/queue/", f"{base}/queue/one/?{named}",
        f"{base}/queue/{queue.pk}/change/", f"{base}/tenant/", f"{base}/tenant/{tenant.pk}/change/",
        f"{base}/process/", f"{base}/process/workers/", f"{base}/process/{worker}/change/",
        f"{base}/crondefinition/", f"{base}/crondefinition/{definition.pk}/change/",
        f"{base}/crondefinition/{definition.pk}/ticks/", f"{base}/operatoraction/",
        f"{base}/operatoraction/{action.pk}/change/", f"{base}/job/{Job.objects.get().pk}/change/",
        f"{base}/job/health/", f"{base}/?{urlencode({'q': ATTACK, 'span': ATTACK})}",
        f"{base}/crondefinition/preview/?{urlencode({'expression': ATTACK, 'timezone': ATTACK})}",
    ]  # fmt: skip
