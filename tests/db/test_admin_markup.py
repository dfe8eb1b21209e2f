"""Nothing that comes from a row becomes markup, and no page has code or style of its own in it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils.http import urlencode

from jobs.models import (
    CronDefinition,
    Job,
    Operation,
    OperatorAction,
    Process,
    Queue,
    RollupProgress,
    SavedView,
    Tenant,
    TenantMember,
    Triage,
)
from jobs.results import Failed
from jobs.text import ErrorText
from tests.db.test_admin_tools import FAILED, JOBS, MODELS, command, naming, page_of
from tests.factories import Connection, claim, finish, process, schedule

pytestmark = pytest.mark.django_db

IMAGE = "<img src=x onerror=alert(1)>"
SCRIPT = "</script><script>alert(2)</script>"
BREAKS = "\"'><svg/onload=alert(3)>"
ATTACK = IMAGE + SCRIPT + BREAKS
BIDI = "\u202etxt.exe"

UNTOUCHED = {"/admin/", "/admin/jobs/", "add a definition", "no such job"}
"""Pages without text of rows."""
_SAFE_SCRIPT = re.compile(r"<script\s[^>]*\bsrc=")


def is_clean(html: str) -> bool:
    tags = re.findall(r"<[a-zA-Z][^>]*>", html)
    return (
        all(_SAFE_SCRIPT.match(tag) for tag in tags if tag.startswith("<script"))
        and not any(re.search(r"\s(on\w+|style)=", re.sub(r'"[^"]*"', '""', tag)) for tag in tags)
        and not any(tag.startswith(("<style", "<img src=x", "<svg/")) for tag in tags)
        and not re.search(r'href="\s*javascript:', html)
    )


@pytest.fixture
def pages(connection: Connection) -> dict[str, str]:
    """Rows full of markup, in every field that takes text, and the pages that show them."""
    name = ATTACK[:100]
    job = schedule(
        "test.noop", {IMAGE: ATTACK}, tenant=name, queue=name, group=name, unique_key=ATTACK, max_attempts=1
    )
    text = f"{ATTACK} postgres://u:hunter2@h/d {BIDI}"
    worker = process(connection)
    finish(
        connection,
        claim(connection, job, worker),
        Failed(ErrorText(ATTACK, text, text, IMAGE[:16]), timedelta()),
    )
    Process.objects.filter(pk=worker).update(host=ATTACK, queues=[name], types=[name])
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_job SET job_type = %s, concurrency_key = %s", [name, ATTACK])
    definition = CronDefinition.objects.create(
        name=ATTACK, tenant=job.tenant, expression="* * * * *", job_type="test.noop", payload={IMAGE: ATTACK},
        source=name, broken=ATTACK, note=ATTACK,
    )  # fmt: skip
    CronDefinition.objects.update(expression=ATTACK, timezone=ATTACK[:64], job_type=name, broken=ATTACK)
    queue = Queue.objects.create(name=name, max_running=0)
    action = OperatorAction.objects.create(
        verb=IMAGE[:20],
        actor_name=ATTACK,
        reason=ATTACK,
        skipped={ATTACK: 1},
        target={"jobs": [ATTACK], ATTACK: 1},
    )
    Operation.objects.create(
        verb="cancel", query=ATTACK, arguments={IMAGE: ATTACK}, reason=ATTACK, author_name=ATTACK, action_id=action.pk,
        cutoff=job.created_at, ceiling=1, rate=1, note=ATTACK, skipped={ATTACK: 1},
    )  # fmt: skip
    Triage.objects.create(fingerprint=IMAGE[:16], state="known", owner=ATTACK, note=ATTACK, by=ATTACK)
    OperatorAction.objects.create(verb="deploy", actor_name="x", target={"deploy": ATTACK[:100]})
    RollupProgress.objects.create(first=job.created_at, second=job.created_at, hour=job.created_at)
    SavedView.objects.create(
        name=ATTACK[:60], query=ATTACK, owner=User.objects.create_user(ATTACK), shared=True
    )
    TenantMember.objects.create(user=User.objects.get(username=ATTACK), tenant=job.tenant)
    lists = {
        url: url for url in ["/admin/", "/admin/jobs/", *(f"/admin/jobs/{name}/" for name in MODELS), FAILED]
    }
    rows: list[Any] = [
        definition,
        queue,
        action,
        Tenant.objects.get(slug=name),
        Process.objects.get(pk=worker),
        Operation.objects.get(),
        TenantMember.objects.get(),
    ]
    return lists | {
        "job": page_of(job),
        **{row._meta.model_name: f"/admin/jobs/{row._meta.model_name}/{row.pk}/change/" for row in rows},
        "add a definition": "/admin/jobs/crondefinition/add/",
        "search": f"{JOBS}?{urlencode({'q': ATTACK, IMAGE: '1'})}",
        "search for a tenant": f"{JOBS}?{urlencode({'q': 'tenant:' + chr(34) + ATTACK.replace(chr(34), chr(34) * 2) + chr(34)})}",
        "a search that finds": f"{JOBS}?{urlencode({'q': '-state:scheduled due:-1d..+1d'})}",
        "operation": f"/admin/jobs/operation/new/retry/?{urlencode({'q': ATTACK})}",
        "operation with samples": f"/admin/jobs/operation/new/retry/?{urlencode({'q': 'state:failed'})}",
        "errors": f"{JOBS}errors/",
        "triage": f"{JOBS}errors/triage/?{urlencode({'fingerprint': IMAGE[:16]})}",
        "overview": "/admin/jobs/?span=24h",
        "no such job": f"{JOBS}{SCRIPT.replace('/', '_2F')}/change/",
    }


def test_no_page_has_markup_from_a_row_or_code_of_its_own(
    admin_client: Client, pages: dict[str, str]
) -> None:
    for name, url in pages.items():
        response = admin_client.get(url, follow=True)
        assert response.status_code == 200, name
        assert is_clean(response.text), name
        assert "&lt;img src=x" in response.text or name in UNTOUCHED, name
        assert "hunter2" not in response.text, name
        assert BIDI not in response.text, name


def test_confirm_reveal_preview_and_messages_are_clean(admin_client: Client, pages: dict[str, str]) -> None:
    job = Job.objects.get()
    rule = {"expression": ATTACK, "timezone": ATTACK, "dst": ATTACK}
    posts: list[tuple[str, dict[str, Any]]] = [
        (command("retry"), naming(job, next=ATTACK)),
        (command("reveal"), naming(job, reason=ATTACK, confirmed="1")),
        (command("retry"), naming(job, reason=ATTACK * 20, confirmed="1")),
        (command("retry"), naming(job, reason=ATTACK, confirmed="1")),
        (command("cancel"), naming(ATTACK, confirmed="1")),
        ("/admin/jobs/crondefinition/preview/", rule),
        ("/admin/jobs/crondefinition/add/", {**rule, "name": ATTACK, "job_type": ATTACK, "payload": ATTACK}),
        (pages["queue"], {"max_running": "0"}),
        (pages["triage"], {"state": "mended", "owner": ATTACK[:150], "note": ATTACK, "seen": ATTACK[:40]}),
        (f"{JOBS}export/", {"q": ATTACK, "format": ATTACK}),
    ]
    for url, data in posts:
        response = admin_client.post(url, data, follow=True)
        assert response.status_code == 200
        assert is_clean(response.text), (url, data)


@pytest.mark.parametrize(
    "html", [f"<p>{IMAGE}</p>", SCRIPT, '<p style="x">', "<style>", '<a href="javascript:x">']
)
def test_what_is_not_clean_is_seen(html: str) -> None:
    assert not is_clean(html)
