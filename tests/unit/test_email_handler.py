from __future__ import annotations

import smtplib
from email import message_from_bytes
from pathlib import Path
from typing import Any
from uuid import uuid4

import django
import pytest
from django.core import mail
from django.core.mail import EmailMessage
from pytest_django import Settings

from jobs.errors import Fail
from jobs.handlers.email import message_id, send


@pytest.fixture(autouse=True)
def _sender(settings: Settings, mailoutbox: list[EmailMessage]) -> None:
    settings.DEFAULT_FROM_EMAIL = "Jobs <jobs@example.org>"
    if django.VERSION >= (6, 1):
        settings.MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}


def call(**arguments: Any) -> dict[str, Any]:
    return send(
        **{
            "idempotency_key": "key-1",
            "to": "ada@example.org",
            "subject": "Hello",
            "body": "text",
            **arguments,
        }
    )


def test_a_message_is_sent(mailoutbox: list[EmailMessage]) -> None:
    result = call(
        to=["ada@example.org", "bob@example.org"], from_email="me@example.com", headers={"X-Campaign": "7"}
    )
    [message] = mailoutbox
    assert (message.subject, message.body, message.from_email) == ("Hello", "text", "me@example.com")
    assert message.to == ["ada@example.org", "bob@example.org"]
    assert message.message()["X-Campaign"] == "7"
    assert result == {"sent": 1, "message_id": "<key-1@example.com>"}


def test_html_is_sent_beside_the_text(mailoutbox: list[EmailMessage]) -> None:
    call(html="<b>text</b>")
    parts = [part.get_content_type() for part in mailoutbox[0].message().walk()]
    assert parts == ["multipart/alternative", "text/plain", "text/html"]


def test_every_attempt_has_the_same_message_id_and_every_job_its_own(mailoutbox: list[EmailMessage]) -> None:
    first, second = str(uuid4()), str(uuid4())
    for key in (first, first, second):
        call(idempotency_key=key)
    ids = [message.message()["Message-ID"] for message in mailoutbox]
    assert ids == [f"<{first}@example.org>", f"<{first}@example.org>", f"<{second}@example.org>"]


@pytest.mark.parametrize("key", ["a b", "x@y", "<>", "ä", "", "k" * 500, "a\r\nb"])
def test_any_key_makes_a_valid_message_id(key: str) -> None:
    made = message_id(key, "Jobs <jobs@example.org>")
    assert made == message_id(key, "other@example.org")
    assert made.isascii()
    assert made.startswith("<")
    assert made.endswith("@example.org>")
    assert not set(" \r\n@<>") & set(made[1:-1].removesuffix("@example.org"))


def test_a_sender_without_a_domain_still_gives_a_message_id() -> None:
    for sender in ("root", "ada@", "ada@ä.example"):
        assert message_id("key", sender) == "<key@localhost>"


def test_a_message_id_of_the_caller_is_kept(mailoutbox: list[EmailMessage]) -> None:
    result = call(headers={"message-id": "<mine@example.org>"})
    assert result["message_id"] == "<mine@example.org>"
    assert mailoutbox[0].message().get_all("Message-ID") == ["<mine@example.org>"]


@pytest.mark.parametrize("evil", ["\r\nBcc: eve@example.org", "\n x", "\r", "\0", "\u2028", "\x85", "\v"])
@pytest.mark.parametrize("field", ["to", "subject", "from_email", "headers"])
def test_header_injection_ends_the_job_and_sends_nothing(
    mailoutbox: list[EmailMessage], field: str, evil: str
) -> None:
    value = "ada@example.org" + evil
    arguments: dict[str, Any] = {field: {"X-A": value} if field == "headers" else value}
    with pytest.raises(Fail, match=rf"{field}.*contains a line break"):
        call(**arguments)
    with pytest.raises(Fail):
        call(headers={"X-A" + evil: "a"})
    assert mailoutbox == []


@pytest.mark.parametrize("name", ["To", "bcc", "Subject", "FROM", "Content-Type", "X Y", "X:", ""])
def test_headers_that_are_arguments_or_no_names_are_refused(name: str) -> None:
    with pytest.raises(Fail, match="headers: "):
        call(headers={name: "a"})


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"to": []}, "to"),
        ({"to": None}, "to"),
        ({"to": [7]}, "to"),
        ({"to": "nobody"}, "to"),
        ({"subject": None}, "subject"),
        ({"body": 7}, "body"),
        ({"html": 7}, "html"),
        ({"from_email": 7}, "from_email"),
        ({"headers": ["X: y"]}, "headers"),
        ({"headers": {"X": 7}}, "headers"),
    ],
)
def test_wrong_arguments_end_the_job(
    mailoutbox: list[EmailMessage], arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(Fail, match=f"^{field}"):
        call(**arguments)
    assert mailoutbox == []


def refuse(monkeypatch: pytest.MonkeyPatch, **codes: int) -> None:
    refused = {f"{name}@example.org": (code, b"no") for name, code in codes.items()}

    def fail(self: EmailMessage, *args: object, **kwargs: object) -> int:
        raise smtplib.SMTPRecipientsRefused(refused)

    monkeypatch.setattr(EmailMessage, "send", fail)


def test_recipients_refused_for_good_end_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, ada=550, bob=554)
    with pytest.raises(Fail, match="550, 554"):
        call()


def test_recipients_refused_for_now_are_a_failed_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, ada=550, bob=450)
    with pytest.raises(smtplib.SMTPRecipientsRefused):
        call()


def test_a_message_reaches_the_file_backend(settings: Settings, tmp_path: Path) -> None:
    backend = "django.core.mail.backends.filebased.EmailBackend"
    if django.VERSION >= (6, 1):
        settings.MAILERS = {"default": {"BACKEND": backend, "OPTIONS": {"file_path": str(tmp_path)}}}
    else:
        settings.EMAIL_BACKEND, settings.EMAIL_FILE_PATH = backend, str(tmp_path)
    call(subject="Grüße", body="Schöne Grüße")
    [written] = tmp_path.iterdir()
    message = message_from_bytes(written.read_bytes())
    assert message["Message-ID"] == "<key-1@example.org>"
    assert message["To"] == "ada@example.org"
    assert mail.outbox == []
