from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.core import management
from django.core.management import BaseCommand, CommandError, CommandParser
from pytest_django import Settings

from jobs.errors import Fail
from jobs.handlers.command import Tail, run
from jobs.payload import encode
from jobs.text import describe_exception

Body = Callable[[BaseCommand, dict[str, Any]], Any]


class Probe(BaseCommand):
    requires_system_checks: list[str] = []
    body: Body

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("words", nargs="*")
        parser.add_argument("--times", type=int, default=1)

    def handle(self, *args: Any, **options: Any) -> Any:
        return type(self).body(self, options)


@pytest.fixture
def probe(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> type[Probe]:
    """The one command there is; its `body` is what a test makes it do."""
    settings.SCHEDULER = {"django_commands": ["probe", "missing"], "result_bytes": 8 * 1024}
    monkeypatch.setattr(management, "get_commands", lambda: {"probe": Probe(), "secret": Probe()})
    Probe.body = lambda self, options: None
    return Probe


def test_the_output_of_the_command_is_the_result(probe: type[Probe]) -> None:
    def body(self: BaseCommand, options: dict[str, Any]) -> str:
        self.stdout.write(" ".join(options["words"]) * options["times"])
        self.stderr.write("to stderr")
        return "returned"

    probe.body = body
    assert run("probe", ["a", "b"], {"times": 2}) == {"output": "a ba b\nto stderr\nreturned\n"}


def test_colours_are_not_in_the_output(probe: type[Probe]) -> None:
    probe.body = lambda self, options: self.stdout.write(self.style.ERROR("plain"))
    assert run("probe") == {"output": "plain\n"}


@pytest.mark.parametrize("name", ["secret", "Probe", "probe ", "", None, 7])
def test_a_command_that_the_settings_do_not_name_ends_the_job(probe: type[Probe], name: Any) -> None:
    with pytest.raises(Fail, match=r"name it in SCHEDULER\['django_commands'\]"):
        run(name)


def test_by_default_no_command_may_run(settings: Settings) -> None:
    settings.SCHEDULER = {}
    with pytest.raises(Fail):
        run("check")


@pytest.mark.parametrize("option", ["stdout", "stderr"])
def test_the_output_cannot_be_sent_elsewhere(probe: type[Probe], option: str) -> None:
    with pytest.raises(Fail, match=option):
        run("probe", [], {option: "/tmp/x"})


def test_a_command_error_is_a_failed_attempt_with_the_output_in_its_text(probe: type[Probe]) -> None:
    def body(self: BaseCommand, options: dict[str, Any]) -> None:
        self.stdout.write("got this far")
        raise CommandError("no more")

    probe.body = body
    with pytest.raises(CommandError, match="no more") as caught:
        run("probe")
    assert "got this far" in describe_exception(caught.value, 32 * 1024).traceback


def test_wrong_arguments_and_missing_commands_are_failed_attempts(probe: type[Probe]) -> None:
    with pytest.raises(CommandError, match="--times"):
        run("probe", ["--times", "many"])
    with pytest.raises(CommandError, match="missing"):
        run("missing")


@pytest.mark.parametrize("status", [1, 3, "sorry"])
def test_rx_01_an_exit_is_a_failed_attempt_and_not_the_end_of_the_worker(
    probe: type[Probe], status: Any
) -> None:
    probe.body = lambda self, options: sys.exit(status)
    with pytest.raises(CommandError, match=f"exited with status {status}"):
        run("probe")


@pytest.mark.parametrize("status", [0, None])
def test_an_exit_without_error_completes(probe: type[Probe], status: Any) -> None:
    probe.body = lambda self, options: sys.exit(status)
    assert run("probe") == {"output": ""}


def test_ex_03_only_the_tail_of_a_large_output_is_kept(probe: type[Probe]) -> None:
    def body(self: BaseCommand, options: dict[str, Any]) -> None:
        for number in range(20_000):
            self.stdout.write(f"line {number}")

    probe.body = body
    output = run("probe")["output"]
    assert output.endswith("line 19998\nline 19999\n")
    assert "were not kept" in output or "characters cut" in output
    assert len(output.encode()) <= 1024


@pytest.mark.parametrize("text", ["\0", "\udcff", "\x1b", "😀", '"'])
def test_pl_03_any_output_becomes_a_result_that_can_be_stored(probe: type[Probe], text: str) -> None:
    probe.body = lambda self, options: self.stdout.write(text * 100_000)
    result = run("probe")
    assert json.loads(encode(result, limit=8 * 1024, field="result")) == result


def test_a_tail_does_not_grow_with_what_is_written() -> None:
    tail = Tail(100)
    for _ in range(10_000):
        tail.write("x" * 70)
    assert len(tail._chunks) <= 3
    assert tail.text().endswith("x" * 100)
    assert "699,900 characters" in tail.text()
