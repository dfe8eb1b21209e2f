"""`email.send`: one message through Django's mailer, recognisable as the same one when it is sent twice."""

from __future__ import annotations

import re
import smtplib
from email.utils import parseaddr
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.core.mail import EmailMultiAlternatives

from jobs.errors import Fail

_ARGUMENTS = {
    "to",
    "cc",
    "bcc",
    "subject",
    "from",
    "sender",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
}
_BREAKS = re.compile(
    r"[\r\n\0\v\f\x1c-\x1e\x85\u2028\u2029]"
)  # whatever str.splitlines takes for the end of a line
_HEADER_NAME = re.compile(r"[!-9;-~]+")
_DOMAIN = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_ID = re.compile(r"[A-Za-z0-9_+-]{1,100}")


def send(
    *,
    idempotency_key: str,
    to: Any,
    subject: Any,
    body: Any = "",
    html: Any = None,
    from_email: Any = None,
    headers: Any = None,
) -> dict[str, Any]:
    """Send one message, of arguments as they come out of a payload, and return {"sent": number of messages, "message_id": …}.

    Every attempt of a job sends the same Message-ID, unless `headers` has one, so that mail servers and readers can
    drop a repetition. Fail for arguments that would break out of a header and when the server refuses all recipients
    for good; other errors of the mailer are failed attempts. Set EMAIL_TIMEOUT: the mailer's default waits for ever.
    """
    recipients = [to] if isinstance(to, str) else to
    if not isinstance(recipients, list) or not recipients:
        raise Fail("to: must be an address or a list of at least one")
    for address in recipients:
        _one_line("to", address)
        if "@" not in address:
            raise Fail("to: holds text that is no address")
    for field, text in (("body", body), ("html", html or "")):
        if not isinstance(text, str):
            raise Fail(f"{field}: must be text, not {type(text).__name__}")
    sender = from_email or settings.DEFAULT_FROM_EMAIL
    _one_line("from_email", sender)
    _one_line("subject", subject)
    extra = _checked(headers or {})
    if not any(name.lower() == "message-id" for name in extra):
        extra["Message-ID"] = message_id(idempotency_key, sender)
    message = EmailMultiAlternatives(subject, body, sender, recipients, headers=extra)
    if html is not None:
        message.attach_alternative(html, "text/html")
    try:
        sent = message.send()
    except smtplib.SMTPRecipientsRefused as error:
        codes = sorted({code for code, _ in error.recipients.values()})
        if codes and min(codes) >= 500:
            raise Fail(
                f"the mail server refused every recipient for good ({', '.join(map(str, codes))})"
            ) from error
        raise
    return {"sent": sent, "message_id": next(extra[name] for name in extra if name.lower() == "message-id")}


def message_id(idempotency_key: str, sender: str) -> str:
    """Of the key and the sender's domain, not of this host's name: another worker must send the same."""
    local = (
        idempotency_key if _ID.fullmatch(idempotency_key) else sha256(idempotency_key.encode()).hexdigest()
    )
    domain = parseaddr(sender)[1].partition("@")[2]
    return f"<{local}@{domain if _DOMAIN.fullmatch(domain) else 'localhost'}>"


def _checked(headers: Any) -> dict[str, str]:
    if not isinstance(headers, dict):
        raise Fail(f"headers: must be a dict of names and values, not {type(headers).__name__}")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise Fail("headers: a name has characters that header names do not have")
        if name.lower() in _ARGUMENTS:
            raise Fail(
                f"headers: {name} cannot be set here; use the arguments to, subject, from_email, body and html"
            )
        _one_line(f"headers[{name}]", value)
    return dict(headers)


def _one_line(field: str, value: object) -> None:
    if not isinstance(value, str):
        raise Fail(f"{field}: must be text, not {type(value).__name__}")
    if _BREAKS.search(value):
        raise Fail(f"{field}: contains a line break or NUL, which would start a header of its own; remove it")
