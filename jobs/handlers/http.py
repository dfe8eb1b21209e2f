"""`http.request`: call a URL that a tenant chose, without letting it reach into our own network."""

from __future__ import annotations

import http.client
import json as jsonlib
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from jobs.conf import conf
from jobs.errors import Fail, Retry
from jobs.handlers.net import Connection, Deadline, addresses
from jobs.text import scrub, storable

MAX_TIMEOUT = 60
MAX_REDIRECTS = 5
BODY_KEPT = 4096
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
REDIRECTS = (301, 302, 303, 307, 308)
RETRIED = (408, 425, 429)
_OURS = {
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect",
    "accept-encoding", "proxy-authorization", "proxy-connection",
}  # fmt: skip
_SENT_ELSEWHERE = {"accept", "accept-language", "content-type", "idempotency-key", "user-agent"}
"""Of the headers, what another host gets after a redirect: keys and tokens have many names."""
_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|[0-9a-f:.]*:[0-9a-f:.]*")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class Target(NamedTuple):
    tls: bool
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        """For messages: paths and queries hold tokens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: str
    truncated: bool


def send(
    *,
    url: Any,
    idempotency_key: str,
    method: Any = "POST",
    headers: Any = None,
    json: Any = None,
    body: Any = None,
    timeout: Any = 30,
    heartbeat: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Send one request, of arguments as they come out of a payload, and return {"status", "body": its first 4 kB as text, "truncated"} for 2xx and 3xx.

    `timeout`, in seconds, covers everything: names, redirects and body. Redirects (at most 5) are checked like the
    first URL; 301 and 302 are followed for GET and HEAD only, since they would drop a body. Retry for network errors,
    408, 425, 429 and 5xx, after the time the server asks for, up to SCHEDULER['backoff_cap']. Fail for other answers,
    refused addresses and wrong arguments.
    """
    method = method.upper() if isinstance(method, str) else ""
    if method not in METHODS:
        raise Fail(f"method: must be one of {', '.join(METHODS)}")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= MAX_TIMEOUT:
        raise Fail(f"timeout: must be a number of seconds above 0 and up to {MAX_TIMEOUT}")
    content, sent = _content(json, body), _headers(headers or {}, idempotency_key)
    if json is not None:
        sent.setdefault("content-type", "application/json")
    target, deadline = parse(url), Deadline(timeout)
    for _ in range(MAX_REDIRECTS + 1):
        heartbeat()
        answer = _exchange(target, method, sent, content, deadline)
        location = answer.headers.get("Location")
        if answer.status not in REDIRECTS or location is None:
            return _result(method, target, answer)
        if answer.status in (301, 302) and method not in ("GET", "HEAD"):
            raise Fail(
                f"{target.origin} moved ({answer.status}), which would drop the {method} body: use its new URL"
            )
        if answer.status == 303 and method != "HEAD":
            method, content = "GET", None
            sent.pop("content-type", None)
        target, sent = _redirected(target, location, sent)
    raise Fail(f"{target.origin} redirected more than {MAX_REDIRECTS} times")


def parse(url: Any) -> Target:
    """A URL that is safe to take apart. Fail says what is wrong with it, never showing it whole."""
    if not isinstance(url, str) or not re.fullmatch(r"[\x21-\x5b\x5d-\x7e]+", url):
        raise Fail("url: must be printable ASCII without spaces and backslashes; percent-encode the rest")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError as error:
        raise Fail(f"url: cannot be read: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise Fail("url: must begin with http:// or https://")
    if "@" in parts.netloc:
        raise Fail("url: must not hold a user or password; send an Authorization header")
    if not _HOST.fullmatch(host) or port == 0:
        raise Fail("url: has no valid host or port (write international names as xn--…)")
    tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(tls, host, port or (443 if tls else 80), path)


def retry_after(value: str | None, now: datetime) -> timedelta | None:
    """The header as a delay up to SCHEDULER['backoff_cap']; None when it asks for none or cannot be read."""
    value = (value or "").strip()
    try:
        if re.fullmatch(r"[0-9]{1,9}", value):
            delay = timedelta(seconds=int(value))
        else:
            moment = parsedate_to_datetime(value)
            delay = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now
    except (ValueError, TypeError, OverflowError):
        return None
    return min(delay, conf().backoff_cap) if delay > timedelta() else None


def _content(json: Any, body: Any) -> bytes | None:
    if json is not None and body is not None:
        raise Fail("body: give json or body, not both")
    if body is not None and not isinstance(body, str):
        raise Fail(f"body: must be text, not {type(body).__name__}; use json for structured data")
    text = body if json is None else jsonlib.dumps(json, ensure_ascii=False, separators=(",", ":"))
    return None if text is None else text.encode()


def _headers(headers: Any, idempotency_key: str) -> dict[str, str]:
    sent = {"user-agent": "django-punctual", "idempotency-key": idempotency_key}
    if not isinstance(headers, dict):
        raise Fail(f"headers: must be a dict of names and values, not {type(headers).__name__}")
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or name.lower() in _OURS:
            raise Fail(
                f"headers: {ascii(name)[:60]} is no header name, or one that the request sets by itself"
            )
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise Fail(
                f"headers: {name} must be text without line breaks, control characters and non-Latin letters"
            )
        sent[name.lower()] = value
    return sent


def _exchange(
    target: Target, method: str, headers: dict[str, str], content: bytes | None, deadline: Deadline
) -> Answer:
    connection = None
    try:
        pinned = addresses(target.host, target.port, deadline)
        connection = Connection(target.host, target.port, tls=target.tls, pinned=pinned, deadline=deadline)
        connection.request(method, target.path, body=content, headers={**headers, "connection": "close"})
        response = connection.getresponse()
        data = response.read(BODY_KEPT + 1)
        if len(data) <= BODY_KEPT and response.length:
            raise http.client.IncompleteRead(data, response.length)
    except TimeoutError as error:
        raise Retry(f"{method} {target.origin}: no complete answer within {deadline.seconds:g} s") from error
    except (OSError, http.client.HTTPException) as error:
        raise Retry(f"{method} {target.origin}: {type(error).__name__}: {error}") from error
    finally:
        if connection is not None:
            connection.end()
    return Answer(
        response.status, response.headers, _text(data[:BODY_KEPT], response.headers), len(data) > BODY_KEPT
    )


def _text(data: bytes, headers: http.client.HTTPMessage) -> str:
    try:
        text = data.decode(headers.get_content_charset() or "utf-8", "replace")
    except (LookupError, ValueError):  # a charset that does not exist
        text = data.decode("utf-8", "replace")
    return storable(text, 4 * BODY_KEPT)


def _redirected(target: Target, location: str, headers: dict[str, str]) -> tuple[Target, dict[str, str]]:
    url = urljoin(f"{target.origin}{target.path}", quote(location, safe="%/:=&?~#+!$,;'@()*[]\\"))
    new = parse(url)
    if target.tls and not new.tls:
        raise Fail(f"{target.origin} redirected from https to http; what was sent would no longer be secret")
    upgrade = (target.tls, target.port, new.tls, new.port) == (False, 80, True, 443)
    if new.host == target.host and (upgrade or (new.tls, new.port) == (target.tls, target.port)):
        return new, headers
    return new, {name: value for name, value in headers.items() if name in _SENT_ELSEWHERE}


def _result(method: str, target: Target, answer: Answer) -> dict[str, Any]:
    status = answer.status
    if 200 <= status < 400:
        return {"status": status, "body": answer.body, "truncated": answer.truncated}
    message = f"{method} {target.origin} answered {status}: {scrub(answer.body)[:300]}"
    if status in RETRIED or not 400 <= status < 500:
        raise Retry(message, after=retry_after(answer.headers.get("Retry-After"), datetime.now(UTC)))
    raise Fail(message)
