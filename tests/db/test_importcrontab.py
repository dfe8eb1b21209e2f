"""A crontab becomes definitions in one command, and comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from jobs.cron import Cron
from jobs.models import CronDefinition, Job, Tenant
from jobs.registry import registry
from jobs.tenants import tenant_ids
from tests.unit.test_cron_vectors import INVALID
from tests.unit.test_crontab import SYSTEM, USER

pytestmark = pytest.mark.django_db


def imported(file: Path, *options: str) -> str:
    output = StringIO()
    call_command("importcrontab", str(file), *options, stdout=output, stderr=output)
    return output.getvalue()


@pytest.fixture
def system(tmp_path: Path) -> Path:
    file = tmp_path / "system"
    file.write_text(SYSTEM)
    return file


def test_it_says_what_it_would_write_and_writes_nothing(system: Path) -> None:
    told = imported(system)
    assert "4 definitions would be written" in told
    assert "'mail -s hello admin'," in told, "what the settings must allow"
    mail, report = re.findall(r"^new .* Europe/Berlin .*\n +next (.*)$", told, re.MULTILINE)
    for fires in (mail, report):
        assert len(re.findall(r" \d\d:\d\d\+0[12]00", fires)) == 5, "as its own clock shows them"
    imported(system, "--tenant", "only said")
    assert not CronDefinition.objects.exists()
    assert not Tenant.objects.filter(slug="only said").exists()


def test_applied_each_line_is_a_definition(system: Path) -> None:
    assert "4 definitions written" in imported(
        system, "--apply", "--timezone", "America/New_York", "--tenant", "ops"
    )
    first, *_, mail, report = CronDefinition.objects.order_by("pk")
    assert (first.expression, first.timezone, first.job_type) == (
        "17 * * * *",
        "America/New_York",
        "shell.run",
    )
    assert (first.max_attempts, first.tenant.slug, first.source) == (1, "ops", "system:6")
    assert mail.payload["stdin"] == "Dear admin,\n50% of it.\n"
    assert mail.timezone == "Europe/Berlin"
    assert report.jitter.total_seconds() == 300
    assert not Job.objects.exists()


def test_a_second_import_adds_only_what_is_new(system: Path) -> None:
    imported(system, "--apply")
    system.write_text(SYSTEM + "0 1 * * * root new\n")
    told = imported(system, "--apply")
    assert told.count("known ") == 4
    assert "1 definitions written" in told
    assert CronDefinition.objects.count() == 5


def test_one_bad_line_and_nothing_is_written(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text(f"{USER}@reboot start\n99 * * * * x\n")
    errors = StringIO()
    with pytest.raises(CommandError, match="2 lines cannot be taken over"):
        call_command("importcrontab", str(file), "--user", "--apply", stdout=StringIO(), stderr=errors)
    assert f"{file}:4: expression: @reboot has no time" in errors.getvalue()
    assert f"{file}:5: minute: '99' is not between 0 and 59" in errors.getvalue()
    assert not CronDefinition.objects.exists()


def test_what_the_command_is_given_is_checked(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        imported(tmp_path / "none")
    with pytest.raises(CommandError, match="--timezone: unknown time zone"):
        imported(tmp_path / "none", "--timezone", "Mars/Base")
    (tmp_path / "empty").touch()
    with pytest.raises(CommandError, match="--tenant: ' x' begins"):
        imported(tmp_path / "empty", "--tenant", " x")
    with pytest.raises(CommandError, match="'nowhere' is none of"):
        imported(tmp_path / "empty", "--database", "nowhere")


def told(definitions: Iterable[CronDefinition]) -> set[tuple[str, str, str]]:
    """Their rules, however they are written, and what they run."""
    return {
        (Cron(each.expression).canonical, each.timezone, json.dumps(each.payload, sort_keys=True))
        for each in definitions
    }


def test_it_comes_back_as_a_crontab(system: Path, tmp_path: Path) -> None:
    imported(system, "--apply", "--timezone", "Europe/Berlin")
    CronDefinition.objects.create(
        name="echo",
        tenant=CronDefinition.objects.all()[0].tenant,
        expression="0 1 * * *",
        job_type="test.echo",
    )
    before = told(CronDefinition.objects.exclude(name="echo"))
    output = StringIO()
    call_command("exportcrontab", stdout=output)
    assert "# left out: 'echo: it is of type test.echo, not shell.run'" in output.getvalue()
    CronDefinition.objects.all().delete()
    back = tmp_path / "back"
    back.write_text(output.getvalue())
    imported(back, "--apply")
    assert told(CronDefinition.objects.all()) == before


@pytest.mark.parametrize(
    ("expression", "written"),
    [("0 22-3 * * *", "0 0,1,2,3,22,23 * * *"), ("5/15 * * * *", "5,20,35,50 * * * *"), ("@Daily", "@daily"),
     ("*/5 9-17 * * 1-5", "*/5 9-17 * * 1-5"), ("0 0 ? * MON", "0 0 * * 1")],
)  # fmt: skip
def test_what_other_crons_read_otherwise_is_written_as_lists(expression: str, written: str) -> None:
    CronDefinition.objects.create(
        name="x",
        tenant_id=tenant_ids(["t"])["t"],
        expression=expression,
        job_type="shell.run",
        payload={"command": "x"},
    )
    output = StringIO()
    call_command("exportcrontab", "--user", stdout=output)
    assert output.getvalue().splitlines()[-1] == f"{written} x"


def test_the_type_is_there_and_off() -> None:
    assert registry.get("shell.run")


def line_of(row: dict[str, str]) -> str:
    """Empty where the text would be no line, or another one, in a file: a comment, a variable, several lines, more or
    fewer fields, a leading minus or space."""
    text = row["expression"].encode("ascii").decode("unicode_escape")
    is_line = text == text.strip() and text[:1] not in ("", "#", "-") and len(text.splitlines()) == 1
    return text if is_line and len(text.split()) == 5 and "=" not in text else ""


LINES = [text for row in INVALID if (text := line_of(row))]


def test_most_invalid_vectors_can_be_lines() -> None:
    assert len(LINES) > 115


@pytest.mark.parametrize("text", LINES, ids=range(len(LINES)))
def test_every_invalid_vector_is_refused_by_the_import(text: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(f"{text} command\n", "utf-8", "surrogatepass")
    with pytest.raises(CommandError):
        imported(file, "--user", "--apply")
    assert not CronDefinition.objects.exists()
