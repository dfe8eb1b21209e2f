"""The support bundle: enough to help, nothing that is nobody's business, and never large."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from jobs import clock
from jobs.console import bundle, health, hidden, remember
from jobs.console.health import DayLine
from jobs.leases import register
from jobs.models import OperatorAction, ProcessKind
from jobs.partitions import Step, day_of
from jobs.results import Failed
from jobs.search import guard
from jobs.text import ErrorText
from tests.db.test_admin_tools import messages_of, operator_with
from tests.factories import Connection, claim, finish, process, schedule

pytestmark = pytest.mark.django_db
HEALTH = "/admin/jobs/job/health/"
URL = f"{HEALTH}bundle/"


@pytest.fixture
def client() -> Client:
    remember.forget()
    return operator_with("view_job", "view_health")


def taken(client: Client) -> dict[str, Any]:
    response = client.post(URL)
    assert response.status_code == 200
    assert response["Content-Type"].startswith("application/json")
    assert 'filename="support-' in response["Content-Disposition"]
    found: dict[str, Any] = json.loads(response.content)
    return found


def test_it_says_what_a_helper_asks(client: Client, connection: Connection) -> None:
    register(connection, ProcessKind.DISPATCHER)
    schedule()
    found = taken(client)
    assert {"Django", "Python", "PostgreSQL", "psycopg"} <= set(found["versions"])
    assert found["settings"]["lease"] == 30
    assert {check["name"] for check in found["checks"]} >= {"Days ahead", "Durability", "Vacuum"}
    assert [day["when"] for day in found["days"]].count("today") == 1
    assert found["plan"]["ready"] >= 1
    assert {"jobs_queueentry", "jobs_process"} <= {table["name"] for table in found["tables"]}
    assert found["processes"] == {"dispatcher live": 1}
    assert found["server"]["fsync"] in ("on", "off")
    assert found["django"]["databases"][0]["engine"].endswith("postgresql")
    assert any(node["of"] == "jobs_job" for node in found["plans"]["due:today"])
    assert found["system_checks"] == []


def test_what_is_wrong_is_in_it(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.checks.MIN_READY_DAYS", 10_000)
    assert [each["id"] for each in taken(client)["system_checks"]] == ["jobs.W010"]


PLANTED = {
    "key": "planted-key-of-django",
    "database": "planted-database-word",
    "address": "planted-pass-in-address",
    "token": "planted-token-value",
    "nested": "planted-nested-value",
    "command": "planted-shell-command",
    "host": "planted-private-host",
    "payload": "planted-payload-value",
    "error": "planted-error-text",
    "name": "planted-tenant-name",
    "queue": "planted-queue-name",
    "machine": "planted-machine-name",
}


@pytest.fixture
def planted(connection: Connection, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets in settings and environment, and what is in rows."""
    settings.SECRET_KEY = PLANTED["key"]
    settings.PAYMENT = {"gateways": [{"api_key": PLANTED["nested"]}]}
    settings.CELLAR = f"https://user:{PLANTED['address']}@cellar.example/"
    settings.SCHEDULER = {
        **settings.SCHEDULER,
        "shell_commands": (PLANTED["command"],),
        "http_private_hosts": (PLANTED["host"],),
    }
    monkeypatch.setenv("STRIPE_TOKEN", PLANTED["token"])
    monkeypatch.setenv("LEGACY_DB_PASSWORD", PLANTED["database"])
    job = schedule("test.echo", {"value": PLANTED["payload"]}, tenant=PLANTED["name"], queue=PLANTED["queue"])
    text = ErrorText("ValueError", PLANTED["error"], "", "0" * 16)
    finish(connection, claim(connection, job, process(connection)), Failed(text, timedelta(), final=True))
    connection.execute("UPDATE jobs_process SET host = %s", [PLANTED["machine"]])


def test_no_secret_and_no_name_is_in_it(
    planted: None, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = [PLANTED[name] for name in ("key", "database", "address", "token", "nested")]
    leaking = f"cannot log in with {' or '.join(secrets)}, password=planted-by-hand"
    monkeypatch.setattr("jobs.console.health._plan", lambda *args: (None, leaking))
    response = client.post(URL)
    assert response.status_code == 200
    text = response.content.decode()
    assert "cannot log in with [removed] or [removed]" in text  # it was there, and was taken out
    assert "planted" not in text
    assert json.loads(text)["settings"]["shell_commands"] == "1 entries"


def test_the_names_of_sessions_stay_here(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = health._server()
    old = {"pid": 7, "name": "planted-session", "state": "active", "seconds": 4000.0}
    monkeypatch.setattr(health, "_server", lambda: ({**server, "long": [old]}, ""))
    found = taken(client)
    assert found["long_transactions"] == [{"state": "active", "seconds": 4000.0}]
    assert "The oldest, pid 7, is open for" in json.dumps(found)
    assert "planted" not in json.dumps(found)


def test_a_secret_is_taken_out_before_a_text_is_cut() -> None:
    hide = hidden.hider()
    told = bundle._plain("x" * (bundle.TEXT - 5) + "password=" + "y" * 50, hide, 10)
    assert len(told) == bundle.TEXT
    assert "yy" not in told


def test_short_values_and_odd_ones_are_no_trouble(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.API_KEY, settings.OTHER_SECRET, settings.THIRD_TOKEN = "x", None, b"planted-\xff-bytes"
    monkeypatch.setenv("BROKEN_URL", "http://[::1")
    monkeypatch.setenv("REGEX_TOKEN", "planted.*(")
    hide = hidden.hider()
    assert hide("x marks planted.*( but not plantedABC") == "x marks [removed] but not plantedABC"


@pytest.mark.parametrize("most", [None, 20_000])
def test_it_is_never_large(client: Client, monkeypatch: pytest.MonkeyPatch, most: int | None) -> None:
    today = day_of(clock.now())
    lines = [
        DayLine(today - timedelta(days=n), 1, 1, 1, Step(today, "keep", "because " * 100), "past")
        for n in range(2000)
    ]
    monkeypatch.setattr("jobs.console.health.day_lines", lambda *args: lines)
    if most:
        monkeypatch.setattr(bundle, "MOST", most)
    response = client.post(URL)
    assert len(response.content) <= bundle.MOST
    assert 0 < len(json.loads(response.content)["days"]) <= bundle.ITEMS[0]


def test_it_takes_a_permission_and_is_recorded(client: Client) -> None:
    assert "Support bundle" in client.get(HEALTH).text
    taken(client)
    action = OperatorAction.objects.get()
    assert (action.verb, action.result, action.via) == ("bundle", "done", "console")
    assert action.target["bytes"] > 1000
    onlooker = operator_with("view_job")
    assert "Support bundle" not in onlooker.get(HEALTH).text
    assert onlooker.post(URL).status_code == 403
    assert OperatorAction.objects.filter(verb="bundle", result="denied").count() == 1
    assert operator_with("view_health").post(URL).status_code == 403
    assert operator_with("view_job", "view_health", tenants=["acme"]).post(URL).status_code == 403
    assert client.get(URL).status_code == 405


def test_a_database_that_is_slow_is_told(
    client: Client, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "PATIENCE", timedelta(milliseconds=50))
    with connection.transaction():
        connection.execute("LOCK TABLE jobs_process IN ACCESS EXCLUSIVE MODE")
        response = client.post(URL)
    assert response.status_code == 302
    assert "the database is too slow" in messages_of(client.get(HEALTH))[0]
    assert not OperatorAction.objects.filter(verb="bundle").exists()
