"""Environment to settings: the right types, and one sentence that names what is wrong."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from psycopg.conninfo import conninfo_to_dict

from jobs.conf import Conf
from jobs.errors import NotConfigured
from scheduler_project import embedded, env

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = {
    "DATABASE_URL": "postgresql://web:secret@db.internal/punctual",
    "SECRET_KEY": "k" * 20 + "0123456789" * 4,
    "ALLOWED_HOSTS": "jobs.example.com",
}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("SCHEDULER_", "TEST_ENV_")):
            monkeypatch.delenv(name)


def load(expression: str, **variables: str) -> Any:
    """An expression of the settings, in a process that has only these variables."""
    code = (
        f"import json; from scheduler_project import settings; print(json.dumps({expression}, default=str))"
    )
    done = run(["-W", "error", "-c", code], **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(**variables: str) -> str:
    """The last line that loading the settings with these variables ends with."""
    done = run(["-c", "import scheduler_project.settings"], **variables)
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


def run(args: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.run(
        [sys.executable, *args], cwd=ROOT, env=kept | variables, capture_output=True, text=True, check=False
    )


def test_settings_load_without_any_variable_and_name_the_embedded_server() -> None:
    found = load(
        "[settings.DEBUG, settings.DATABASES, len(settings.SECRET_KEY) > 40, settings.ALLOWED_HOSTS]"
    )
    debug, databases, has_key, hosts = found

    assert debug
    assert has_key
    assert "localhost" in hosts
    assert databases["default"]["HOST"] == conninfo_to_dict(embedded.uri())["host"]
    assert databases["default"]["OPTIONS"]["application_name"] == "punctual"
    assert "direct" not in databases


def test_with_a_database_url_nothing_of_development_is_left() -> None:
    expression = (
        "[settings.DEBUG, settings.SECURE_SSL_REDIRECT, settings.DATABASES['default'], settings.OWN_DATABASE]"
    )
    debug, tls, database, own = load(expression, **PRODUCTION)

    assert (debug, tls, own) == (False, True, False)
    assert (database["HOST"], database["USER"], database["NAME"]) == ("db.internal", "web", "punctual")


@pytest.mark.parametrize("name", ["SECRET_KEY", "ALLOWED_HOSTS"])
def test_in_production_what_protects_must_be_given(name: str) -> None:
    said = refusal(**{key: value for key, value in PRODUCTION.items() if key != name})

    assert (
        said
        == f"jobs.errors.NotConfigured: {name} is not set; it is required with DATABASE_URL unless DEBUG=1"
    )


def test_the_deploy_check_of_django_is_silent_in_production() -> None:
    done = run(["-W", "error", "manage.py", "check", "--deploy", "--fail-level", "WARNING"], **PRODUCTION)

    assert done.returncode == 0, done.stderr


def test_a_command_says_what_is_wrong_in_one_line() -> None:
    done = run(["manage.py", "check"], **PRODUCTION | {"DATABASE_URL": "mysql://a:secret@b/c"})

    assert done.returncode == 1
    assert done.stderr.strip() == (
        "manage.py: DATABASE_URL must be an address like postgresql://user:password@host:5432/name"
    )


def test_a_direct_address_gets_an_alias_and_spares_the_pooler_server_side_cursors() -> None:
    direct = {"DIRECT_DATABASE_URL": "postgresql://owner@db.internal:6000/punctual"}
    databases = load("settings.DATABASES", **PRODUCTION, **direct)

    assert databases["direct"]["PORT"] == "6000"
    assert databases["default"]["DISABLE_SERVER_SIDE_CURSORS"]


@pytest.mark.parametrize("url", ["hello", "mysql://a@b/c", "postgresql://a@b:port/c", "postgresql://a@b"])
def test_an_address_that_is_not_postgresql_is_refused_without_showing_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_ENV_URL", url)

    with pytest.raises(NotConfigured, match="TEST_ENV_URL must be an address like") as caught:
        env.database("TEST_ENV_URL")
    assert url not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://postgres@/db?host=%2Ftmp%2FA%20b%2Cc&port=5433",
        "postgresql://postgres@%2Ftmp%2Fpunctual:5433/db",
    ],
)
def test_a_socket_folder_means_the_same_to_django_and_to_libpq(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_ENV_URL", url)
    found, libpq = env.database("TEST_ENV_URL"), conninfo_to_dict(url)

    assert found["HOST"] == libpq["host"]
    assert found["PORT"] == libpq["port"] == "5433"
    assert (found["NAME"], found["USER"]) == ("db", "postgres")
    assert "host" not in found["OPTIONS"]


@pytest.mark.parametrize(("value", "meant"), [("1", True), ("Yes", True), ("off", False), ("", True)])
def test_a_flag_knows_its_words(value: str, meant: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_ENV_FLAG", value)

    assert env.flag("TEST_ENV_FLAG", default=True) is meant


def test_a_flag_that_is_neither_yes_nor_no_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_ENV_FLAG", "maybe")

    with pytest.raises(NotConfigured, match="TEST_ENV_FLAG is 'maybe'; it must be 1 or 0"):
        env.flag("TEST_ENV_FLAG", default=True)


def test_a_word_that_is_not_among_those_offered_is_refused() -> None:
    assert refusal(LOG_LEVEL="loud") == (
        "jobs.errors.NotConfigured: LOG_LEVEL is 'loud'; it must be one of DEBUG, INFO, WARNING, ERROR"
    )


def test_scheduler_variables_have_the_types_of_their_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDULER_LEASE", "12.5")
    monkeypatch.setenv("SCHEDULER_THREADS", " 4 ")
    monkeypatch.setenv("SCHEDULER_DJANGO_COMMANDS", "clearsessions, migrate,")
    monkeypatch.setenv("SCHEDULER_TIMEOUT", "none")
    monkeypatch.setenv("SCHEDULER_TENANT_MAX_RUNNING", "7")
    monkeypatch.setenv("SCHEDULER_APPS", "billing,reports")

    assert env.scheduler() == {
        "lease": timedelta(seconds=12.5),
        "threads": 4,
        "django_commands": ("clearsessions", "migrate"),
        "timeout": None,
        "tenant_max_running": 7,
    }
    assert env.names(env.APPS) == ["billing", "reports"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SCHEDULER_LEASE", "soon", "SCHEDULER_LEASE is 'soon'; it must be a number of seconds"),
        ("SCHEDULER_LEASE", "nan", "SCHEDULER_LEASE is 'nan'; it must be a number of seconds"),
        ("SCHEDULER_LEASE", "1e30", "SCHEDULER_LEASE is '1e30'; it must be a number of seconds"),
        ("SCHEDULER_NOISY_SHARE", "most", "SCHEDULER_NOISY_SHARE is 'most'; it must be a number"),
        ("SCHEDULER_NOISY_SHARE", "nan", "SCHEDULER_NOISY_SHARE is nan; it must be 0.01 to 1"),
        ("SCHEDULER_NOISY_SHARE", "70", "SCHEDULER_NOISY_SHARE is 70.0; it must be 0.01 to 1"),
        ("SCHEDULER_THREADS", "2.5", "SCHEDULER_THREADS is '2.5'; it must be a whole number"),
        ("SCHEDULER_THREADS", "", "SCHEDULER_THREADS is ''; it must be a whole number"),
        ("SCHEDULER_THREADS", "0", "SCHEDULER_THREADS is 0; it must be positive"),
        (
            "SCHEDULER_LEESE",
            "30",
            "SCHEDULER_LEESE is no setting; there are SCHEDULER_APPROVE_ABOVE, SCHEDULER_APPS, SCHEDULER_AUDIT_RETENTION",
        ),
    ],
)
def test_a_wrong_scheduler_variable_is_named(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(NotConfigured) as caught:
        env.scheduler()
    assert str(caught.value).startswith(said)


def test_every_setting_of_the_scheduler_can_be_given_by_environment() -> None:
    hints = get_type_hints(Conf)

    for name, hint in hints.items():
        default = getattr(Conf(), name)
        value = ",".join(default) if isinstance(default, tuple) else "7"
        assert env._typed(f"SCHEDULER_{name.upper()}", value, hint) is not None


def test_the_key_of_a_checkout_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "new" / "secret_key"
    key = env.secret_key(file)

    assert len(key) > 60
    assert env.secret_key(file) == key
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_where_no_key_can_be_kept_there_is_one_for_this_process(tmp_path: Path) -> None:
    (tmp_path / "in the way").touch()

    assert len(env.secret_key(tmp_path / "in the way" / "secret_key")) > 60
