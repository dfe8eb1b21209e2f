from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from pytest_django import Settings

from jobs.errors import Cancelled, Fail, Retry
from jobs.handlers import http, net
from jobs.handlers.http import MAX_TIMEOUT, parse, retry_after, send

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@dataclass
class Listener:
    """A real HTTP server: `answer` says what it does with each request, `seen` what came."""

    port: int = 0
    answer: Callable[[BaseHTTPRequestHandler], object] = lambda handler: reply(handler, 200)
    seen: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


def reply(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"ok", **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


@pytest.fixture
def listener(settings: Settings) -> Iterator[Listener]:
    settings.SCHEDULER = {"http_private_hosts": ["127.0.0.0/8"]}
    yield from _serve(Listener())


@pytest.fixture
def other() -> Iterator[Listener]:
    yield from _serve(Listener())


def _serve(state: Listener, context: ssl.SSLContext | None = None) -> Iterator[Listener]:
    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.seen.append((self.command, self.path, headers, content))
            state.answer(self)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *args: object) -> None:
            pass  # clients that hang up are part of the tests

    server = Server(("127.0.0.1", 0), Handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


def call(url: Any, **arguments: Any) -> dict[str, Any]:
    return send(**{"url": url, "idempotency_key": "key-1", "timeout": 10, **arguments})


def resolve_to(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Replace the resolver: each look-up takes the next answer, the last one for ever. Returns the hosts asked for."""
    asked: list[str] = []

    def lookup(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    monkeypatch.setattr(net, "lookup", lookup)
    return asked


# --- requests and answers


def test_a_json_request_arrives_with_its_headers_and_the_answer_is_kept(listener: Listener) -> None:
    result = call(listener.url("/hook?a=1"), json={"grün": [1, None]}, headers={"X-Token": "t"})
    assert result == {"status": 200, "body": "ok", "truncated": False}
    [(method, path, headers, content)] = listener.seen
    assert (method, path) == ("POST", "/hook?a=1")
    assert json.loads(content) == {"grün": [1, None]}
    assert headers["content-type"] == "application/json"
    assert headers["x-token"] == "t"
    assert headers["host"] == f"127.0.0.1:{listener.port}"


def test_a_text_body_and_another_method_are_sent(listener: Listener) -> None:
    call(listener.url(), method="put", body="grün", headers={"Content-Type": "text/plain"})
    [(method, _, headers, content)] = listener.seen
    assert (method, headers["content-type"], content.decode()) == ("PUT", "text/plain", "grün")


def test_the_idempotency_key_is_sent_unless_the_caller_has_one(listener: Listener) -> None:
    call(listener.url())
    call(listener.url(), headers={"Idempotency-Key": "mine"})
    assert [headers["idempotency-key"] for _, _, headers, _ in listener.seen] == ["key-1", "mine"]


def test_a_head_request_has_no_body(listener: Listener) -> None:
    assert call(listener.url(), method="HEAD")["body"] == ""


@pytest.mark.parametrize("status", [200, 201, 204, 299, 300, 304])
def test_2xx_and_3xx_complete(listener: Listener, status: int) -> None:
    listener.answer = lambda handler: reply(handler, status, b"")
    assert call(listener.url())["status"] == status


def test_a_long_body_is_cut_after_4_kb(listener: Listener) -> None:
    listener.answer = lambda handler: reply(handler, 200, b"x" * 10_000_000)
    assert call(listener.url()) == {"status": 200, "body": "x" * 4096, "truncated": True}


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/plain; charset=latin-1", b"gr\xfcn", "grün"),
        ("text/plain; charset=no-such", b"a", "a"),
        ("text/plain; charset=hex", b"a", "a"),
        ("text/plain", b"\xff\0", "�\\x00"),
    ],
)
def test_pl_03_any_body_becomes_storable_text(
    listener: Listener, content_type: str, body: bytes, text: str
) -> None:
    listener.answer = lambda handler: reply(handler, 200, body, Content_Type=content_type)
    assert call(listener.url())["body"] == text


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 599])
def test_passing_errors_ask_for_another_attempt(listener: Listener, status: int) -> None:
    listener.answer = lambda handler: reply(handler, status, b"try later")
    with pytest.raises(Retry, match=f"answered {status}: try later") as caught:
        call(listener.url("/secret-path"))
    assert caught.value.after is None
    assert "secret-path" not in str(caught.value)


@pytest.mark.parametrize("status", [400, 401, 404, 409, 410, 422])
def test_other_4xx_end_the_job(listener: Listener, status: int) -> None:
    listener.answer = lambda handler: reply(handler, status)
    with pytest.raises(Fail, match=f"answered {status}"):
        call(listener.url())


def test_retry_after_of_an_answer_is_honoured(listener: Listener) -> None:
    listener.answer = lambda handler: reply(handler, 503, Retry_After="120")
    with pytest.raises(Retry) as caught:
        call(listener.url())
    assert caught.value.after == timedelta(seconds=120)


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        ("120", timedelta(seconds=120)),
        (" 5 ", timedelta(seconds=5)),
        (format_datetime(NOW + timedelta(minutes=3), usegmt=True), timedelta(minutes=3)),
        ("Sun, 29 Nov 2026 12:00:30 -0000", timedelta(seconds=30)),
        ("999999999", timedelta(hours=6)),
        (format_datetime(NOW + timedelta(days=3), usegmt=True), timedelta(hours=6)),
        ("0", None),
        (format_datetime(NOW - timedelta(days=3), usegmt=True), None),
        ("-5", None),
        ("9" * 5000, None),
        ("soon", None),
        ("Sun, 99 Nov 2026 99:00:30 GMT", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_date_and_capped(
    settings: Settings, value: str | None, delay: timedelta | None
) -> None:
    settings.SCHEDULER = {}
    assert retry_after(value, NOW) == delay


# --- time and broken servers


def test_a_server_that_never_answers_runs_into_the_timeout(listener: Listener) -> None:
    stop = threading.Event()
    listener.answer = lambda handler: stop.wait(20)
    began = time.monotonic()
    try:
        with pytest.raises(Retry, match=r"no complete answer within 0\.3 s"):
            call(listener.url(), timeout=0.3)
    finally:
        stop.set()
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("part", ["status", "header", "body"])
def test_a_server_that_drips_does_not_outlast_the_total_timeout(listener: Listener, part: str) -> None:
    stop = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        start = {
            "status": b"HTTP/1.1 20",
            "header": b"HTTP/1.1 200 OK\r\nX: ",
            "body": b"HTTP/1.1 200 OK\r\n\r\n",
        }
        handler.wfile.write(start[part])
        while not stop.wait(0.05):
            handler.wfile.write(b"0")

    listener.answer = drip
    began = time.monotonic()
    try:
        with pytest.raises(Retry, match="no complete answer"):
            call(listener.url(), timeout=0.5)
    finally:
        stop.set()
    assert time.monotonic() - began < 5


def test_a_name_server_that_does_not_answer_runs_into_the_timeout(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SCHEDULER = {}
    stop = threading.Event()
    monkeypatch.setattr(net, "lookup", lambda host, port: stop.wait(20) and [])
    try:
        with pytest.raises(Retry, match="no complete answer"):
            call("http://slow.example/", timeout=0.2)
    finally:
        stop.set()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nshort",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    ],
)
def test_a_broken_answer_asks_for_another_attempt(listener: Listener, answer: bytes) -> None:
    listener.answer = lambda handler: handler.wfile.write(answer)
    with pytest.raises(Retry):
        call(listener.url())


def test_a_refused_connection_asks_for_another_attempt(settings: Settings) -> None:
    settings.SCHEDULER = {"http_private_hosts": ["127.0.0.0/8"]}
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(Retry, match="ConnectionRefusedError"):
            call(f"http://127.0.0.1:{unused.getsockname()[1]}/")


def test_a_host_without_addresses_asks_for_another_attempt(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SCHEDULER = {}

    def lookup(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(net, "lookup", lookup)
    with pytest.raises(Retry, match="cannot be resolved"):
        call("http://nowhere.example/")


def test_the_second_address_is_used_when_the_first_does_not_answer(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(monkeypatch, ["127.0.0.2", "127.0.0.1"])
    assert call(listener.url(host="two.example"))["status"] == 200


def test_a_cancelled_job_sends_nothing(listener: Listener) -> None:
    def heartbeat() -> None:
        raise Cancelled("stop")

    with pytest.raises(Cancelled):
        call(listener.url(), heartbeat=heartbeat)
    assert listener.seen == []


# --- where a request may go


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.1", "2130706433", "0x7f000001", "localhost", "0.0.0.0", "10.0.0.1", "172.16.0.1",
        "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
        "192.0.2.1", "198.18.0.1", "[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[fec0::1]", "[ff02::1]",
        "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::a00:1]",
        "[2002:7f00:1::]", "[2001:0:4136:e378:8000:63bf:80ff:fffe]", "[2001:db8::1]",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused(settings: Settings, host: str) -> None:
    settings.SCHEDULER = {}
    with pytest.raises(Fail, match=r"SCHEDULER\['http_private_hosts'\]"):
        call(f"http://{host}:1/", timeout=5)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_public_addresses_are_allowed(settings: Settings, address: str) -> None:
    settings.SCHEDULER = {}
    assert net.is_allowed("public.example", address)


def test_private_hosts_may_be_allowed_by_name_and_by_network(settings: Settings) -> None:
    settings.SCHEDULER = {"http_private_hosts": ["Intern.Example.", "10.1.0.0/16", "fd00::/8", "10.2.0.1"]}
    assert net.is_allowed("intern.example", "192.168.0.1")
    assert net.is_allowed("INTERN.example.", "::1")
    assert net.is_allowed("any.example", "10.1.2.3")
    assert net.is_allowed("any.example", "64:ff9b::a01:203")
    assert net.is_allowed("any.example", "fd00::1")
    assert net.is_allowed("any.example", "10.2.0.1")
    assert not net.is_allowed("any.example", "10.2.0.2")
    assert not net.is_allowed("sub.intern.example", "192.168.0.1")


def test_a_name_with_a_private_address_is_refused(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(monkeypatch, ["10.0.0.1"])
    with pytest.raises(Fail, match=r"'inside\.example' has the address 10\.0\.0\.1"):
        call("http://inside.example/")


def test_of_several_addresses_only_allowed_ones_are_connected(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(monkeypatch, ["10.0.0.1", "127.0.0.1"])
    connected: list[str] = []
    create = socket.create_connection

    def spy(address: tuple[str, int], **options: Any) -> socket.socket:
        connected.append(address[0])
        return create(address, **options)

    monkeypatch.setattr(socket, "create_connection", spy)
    call(listener.url(host="both.example"))
    assert connected == ["127.0.0.1"]


def test_a_name_that_changes_its_address_after_the_check_is_not_followed(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = resolve_to(monkeypatch, ["127.0.0.1"], ["10.0.0.1"])
    assert call(listener.url(host="rebind.example"))["status"] == 200
    assert asked == ["rebind.example"]
    assert listener.seen[0][2]["host"] == f"rebind.example:{listener.port}"


def test_a_name_that_changes_its_address_before_a_redirect_is_checked_again(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = resolve_to(monkeypatch, ["127.0.0.1"], ["10.0.0.1"])
    listener.answer = lambda handler: reply(handler, 307, Location="/again")
    with pytest.raises(Fail, match=r"has the address 10\.0\.0\.1"):
        call(listener.url(host="rebind.example"))
    assert asked == ["rebind.example", "rebind.example"]
    assert len(listener.seen) == 1


def test_a_connection_that_ends_elsewhere_is_closed_before_anything_is_sent(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "addresses", lambda *_: ["127.0.0.1"])
    monkeypatch.setattr(net, "is_allowed", lambda host, text: False)
    with pytest.raises(Fail, match="ended at an address that is not allowed"):
        call(listener.url())
    assert listener.seen == []


# --- redirects


def test_redirects_are_followed(listener: Listener) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        hops = {"/hook": "/a?b=1", "/a?b=1": "c", "/c": listener.url("/end")}
        if handler.path in hops:
            reply(handler, 307, Location=hops[handler.path])
        else:
            reply(handler, 200, b"end")

    listener.answer = answer
    assert call(listener.url(), body="x")["body"] == "end"
    assert [(seen[0], seen[1], seen[3]) for seen in listener.seen] == [
        ("POST", path, b"x") for path in ("/hook", "/a?b=1", "/c", "/end")
    ]


def test_a_sixth_redirect_ends_the_job(listener: Listener) -> None:
    listener.answer = lambda handler: reply(handler, 308, Location="/hook")
    with pytest.raises(Fail, match="redirected more than 5 times"):
        call(listener.url())
    assert len(listener.seen) == 6


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("http://10.0.0.1/", "not public"),
        ("http://169.254.169.254/latest/meta-data", "not public"),
        ("//[::1]/", "not public"),
        ("file:///etc/passwd", "must begin with http"),
        ("gopher://127.0.0.1/", "must begin with http"),
        ("http://u:p@127.0.0.1/", "must not hold a user"),
        ("http://127.0.0.1:99999/", "cannot be read"),
        ("http://127.0.0.1\\@10.0.0.1/", "printable ASCII"),
    ],
)
def test_a_redirect_to_a_refused_place_ends_the_job(listener: Listener, location: str, message: str) -> None:
    listener.answer = lambda handler: reply(handler, 302, Location=location)
    with pytest.raises(Fail, match=message):
        call(listener.url(), method="GET")


def test_secret_headers_do_not_go_to_another_host(listener: Listener, other: Listener) -> None:
    headers = {
        "Authorization": "a",
        "Cookie": "b",
        "X-Api-Key": "c",
        "Content-Type": "text/plain",
        "Accept": "*/*",
    }
    listener.answer = lambda handler: reply(handler, 307, Location=other.url("/there", host="localhost"))
    call(listener.url(), body="x", headers=headers)
    [(_, _, first, _)], [(_, _, second, _)] = listener.seen, other.seen
    assert {"authorization", "cookie", "x-api-key"} <= first.keys()
    assert not {"authorization", "cookie", "x-api-key"} & second.keys()
    assert (second["content-type"], second["accept"], second["idempotency-key"]) == (
        "text/plain",
        "*/*",
        "key-1",
    )


def test_headers_stay_within_one_host(listener: Listener) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        reply(handler, 200) if handler.path == "/b" else reply(handler, 308, Location="/b")

    listener.answer = answer
    call(listener.url(), headers={"Authorization": "a"})
    assert [seen[2]["authorization"] for seen in listener.seen] == ["a", "a"]


@pytest.mark.parametrize("status", [301, 302])
def test_a_moved_post_ends_the_job_rather_than_lose_its_body(listener: Listener, status: int) -> None:
    listener.answer = lambda handler: reply(handler, status, Location="/new")
    with pytest.raises(Fail, match="would drop the POST body"):
        call(listener.url(), body="x")
    assert len(listener.seen) == 1


def test_see_other_is_followed_with_get(listener: Listener) -> None:
    listener.answer = lambda handler: reply(
        handler, *((303,) if handler.command == "POST" else (200,)), Location="/new"
    )
    assert call(listener.url(), json={"a": 1})["status"] == 200
    method, path, headers, content = listener.seen[1]
    assert (method, path, content) == ("GET", "/new", b"")
    assert "content-type" not in headers


# --- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder: Path = tmp_path_factory.mktemp("tls")
    key, pem = str(folder / "key.pem"), str(folder / "cert.pem")
    authority = trustme.CA()
    issued = authority.issue_cert("hook.example")
    issued.private_key_pem.write_to_path(key)
    for part in (*issued.cert_chain_pems, authority.cert_pem):
        part.write_to_path(pem, append=True)
    return key, pem


@pytest.fixture
def secure(
    certificate: tuple[str, str], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Listener, list[str | None]]]:
    key, pem = certificate
    settings.SCHEDULER = {"http_private_hosts": ["127.0.0.0/8"]}
    monkeypatch.setattr(net, "tls_context", lambda: ssl.create_default_context(cafile=pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    names: list[str | None] = []
    context.sni_callback = lambda sock, name, ctx: names.append(name)
    for listener in _serve(Listener(), context):
        yield listener, names


def test_tls_checks_the_certificate_for_the_name_while_connecting_to_the_checked_address(
    secure: tuple[Listener, list[str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    listener, names = secure
    resolve_to(monkeypatch, ["127.0.0.1"])
    assert call(f"https://hook.example:{listener.port}/")["status"] == 200
    assert names == ["hook.example"]
    assert listener.seen[0][2]["host"] == f"hook.example:{listener.port}"
    with pytest.raises(Retry, match="SSLCertVerificationError"):
        call(f"https://evil.example:{listener.port}/")
    assert len(listener.seen) == 1


def test_a_redirect_from_https_to_http_ends_the_job(
    secure: tuple[Listener, list[str | None]], other: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener, _ = secure
    resolve_to(monkeypatch, ["127.0.0.1"])
    listener.answer = lambda handler: reply(handler, 307, Location=other.url())
    with pytest.raises(Fail, match="from https to http"):
        call(f"https://hook.example:{listener.port}/")
    assert other.seen == []


# --- arguments


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://example.org/", "must begin with http"),
        ("file:///etc/passwd", "must begin with http"),
        ("javascript:alert(1)", "must begin with http"),
        ("example.org", "must begin with http"),
        ("http://u:hunter2@example.org/", "must not hold a user"),
        ("http://u@example.org/", "must not hold a user"),
        ("http:///path", "no valid host"),
        ("http://", "no valid host"),
        ("http://exa%6dple.org/", "no valid host"),
        ("http://[fe80::1%25eth0]/", "no valid host|cannot be read"),
        ("http://example.org:0/", "no valid host"),
        ("http://example.org:x/", "cannot be read"),
        ("http://[::1/", "cannot be read"),
        ("http://example.org/\r\nX: y", "printable ASCII"),
        ("http://exam\tple.org/", "printable ASCII"),
        (" http://example.org/", "printable ASCII"),
        ("http://example.org/ü", "printable ASCII"),
        ("http://example.org\\@10.0.0.1/", "printable ASCII"),
        ("", "printable ASCII"),
        (7, "printable ASCII"),
    ],
)
def test_a_url_that_cannot_be_trusted_is_refused_and_not_shown(url: Any, message: str) -> None:
    with pytest.raises(Fail, match=message) as caught:
        parse(url)
    assert "hunter2" not in str(caught.value)


def test_a_url_is_taken_apart() -> None:
    assert parse("HTTPS://Example.ORG/a;b?c=d&e#f") == (True, "example.org", 443, "/a;b?c=d&e")
    assert parse("http://[2606:4700::1111]:8080?x") == (False, "2606:4700::1111", 8080, "/?x")


@pytest.mark.parametrize(
    "headers",
    [
        {"X": "a\r\nEvil: b"}, {"X": "a\nb"}, {"X": "a\0"}, {"X\r\nEvil": "b"}, {"X Y": "a"}, {"": "a"}, {"X:": "a"},
        {"X": 7}, {"X": "€"}, {"Host": "other.example"}, {"content-LENGTH": "1"}, {"Transfer-Encoding": "chunked"},
        ["X: y"],
    ],
)  # fmt: skip
def test_header_injection_is_refused(listener: Listener, headers: Any) -> None:
    with pytest.raises(Fail, match="headers: "):
        call(listener.url(), headers=headers)
    assert listener.seen == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "CONNECT"}, "method: "),
        ({"method": "GET / HTTP/1.1\r\n"}, "method: "),
        ({"method": None}, "method: "),
        ({"timeout": 0}, "timeout: "),
        ({"timeout": -1}, "timeout: "),
        ({"timeout": MAX_TIMEOUT + 1}, "timeout: "),
        ({"timeout": float("nan")}, "timeout: "),
        ({"timeout": True}, "timeout: "),
        ({"timeout": "5"}, "timeout: "),
        ({"json": {}, "body": ""}, "json or body"),
        ({"body": {}}, "body: must be text, not dict"),
    ],
)
def test_wrong_arguments_end_the_job(listener: Listener, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(Fail, match=message):
        call(listener.url(), **arguments)
    assert listener.seen == []
