"""What the tests of the admin share: who asks, and what the database was asked."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs.models import Job, OperatorAction, Tenant, TenantMember

JOBS = "/admin/jobs/job/"
FAILED = f"{JOBS}failed/"
MODELS = (
    "job",
    "crondefinition",
    "tenant",
    "queue",
    "process",
    "operation",
    "operatoraction",
    "tenantmember",
)
VIEW = tuple(f"view_{name}" for name in MODELS)
BIG = ("jobs_job", "jobs_timer", "jobs_outcome", "jobs_attempt", "jobs_crontick")


def page_of(job: Any) -> str:
    return f"{JOBS}{getattr(job, 'pk', job)}/change/"


def command(verb: str) -> str:
    return f"{JOBS}command/{verb}/"


def naming(*jobs: Any, **more: Any) -> dict[str, Any]:
    """What a command posts."""
    return {"_selected_action": [str(getattr(job, "pk", job)) for job in jobs], **more}


def user_with(*codenames: str, tenants: Sequence[str] | None = None) -> User:
    """Staff with these permissions, who sees these tenants, or by default all."""
    user = User.objects.create_user(f"operator{User.objects.count()}", is_staff=True)
    for slug in tenants or ():
        TenantMember.objects.create(user=user, tenant=Tenant.objects.get_or_create(slug=slug)[0])
    for codename in (*codenames, *(() if tenants is not None else ("every_tenant",))):
        found = Permission.objects.filter(content_type__app_label="jobs", codename=codename).first()
        user.user_permissions.add(
            found
            or Permission.objects.create(
                codename=codename, name=codename, content_type=ContentType.objects.get_for_model(Job)
            )
        )
    return user


def client_of(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


def operator_with(*codenames: str, tenants: Sequence[str] | None = None) -> Client:
    return client_of(user_with(*codenames, tenants=tenants))


def messages_of(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


def audit() -> list[tuple[str, int, int]]:
    return list(OperatorAction.objects.order_by("id").values_list("verb", "matched", "changed"))


def statements(client: Client, url: str) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200
    return [query["sql"] for query in captured]


def leaves_visited(sql: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql.replace('%', '%%')}")
        (plan,) = cursor.fetchone()
    text = plan if isinstance(plan, str) else json.dumps(plan)
    return set(re.findall(r'"Relation Name": "(\w+?__\d{4}_\d\d_\d\d)"', text))


def days_of(leaves: set[str]) -> set[str]:
    return {leaf.partition("__")[2] for leaf in leaves}


def day_names(since: date, first: int, last: int) -> set[str]:
    """The names of the days around today; around each day that was today since then."""
    days = (datetime.now(UTC).date() - since).days
    return {f"{since + timedelta(days=n):%Y_%m_%d}" for n in range(first, days + last + 1)}
