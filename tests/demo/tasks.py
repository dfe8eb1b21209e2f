"""The handlers of the demo, as any app next to `jobs` has them in its tasks.py."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

from jobs import tasks as built_in
from jobs.context import Context
from jobs.registry import cron, job_type, registry
from tests.demo.ledger import noted

# Emails, webhooks and commands are run by the handlers that come with the scheduler; here they keep the ledger too.
for _type in (built_in.email_send, built_in.http_request, built_in.django_command):
    registry.add(replace(_type, handler=noted(_type.handler)))


@job_type("demo.sync_contacts")
@noted
def sync_contacts(context: Context, failures: int) -> None:
    """A slow service at the other end that is down at first."""
    time.sleep(0.2)
    if context.attempt <= failures:
        raise ConnectionError("the CRM did not answer")


@job_type("demo.poison")
@noted
def poison(context: Context) -> None:
    """A bug that takes the whole process down, as a fault in a C library or the kernel's out-of-memory killer would."""
    os.kill(os.getpid(), signal.SIGKILL)


@cron("* * * * *", name="exchange rates")
@job_type("demo.exchange_rates")
@noted
def exchange_rates(context: Context) -> str:
    return f"rates of {context.due_at:%H:%M}"


@cron("* * * * *", timezone="Europe/Berlin", name="digest", tenant="acme")
@job_type("demo.digest")
@noted
def digest(context: Context) -> str:
    return f"digest of {context.due_at:%H:%M}"
