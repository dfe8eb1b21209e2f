from __future__ import annotations

import sys
import threading
import tracemalloc
from collections.abc import Callable
from typing import NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.text import ErrorText, describe_exception, scrub, storable

LIMIT = 32 * 1024


def raised(body: Callable[[], object]) -> BaseException:
    try:
        body()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def boom(message: object = "boom") -> NoReturn:
    raise ValueError(message)


def size(error: ErrorText) -> int:
    return len((error.cls + error.message + error.traceback).encode())


# --- storable


def test_sound_text_is_stored_as_it_is() -> None:
    assert storable("grün 😀\n", 100) == "grün 😀\n"


def test_pl_03_nul_becomes_a_visible_escape() -> None:
    assert storable("a\0b", 100) == "a\\x00b"


def test_pl_04_lone_surrogates_become_visible_escapes() -> None:
    assert storable("file\udcff \ud835", 100) == "file\\udcff \\ud835"


def test_ex_03_long_text_keeps_head_and_tail_around_a_marker() -> None:
    text = storable("begin" + "x" * 10_000 + "end", 200)
    assert text.startswith("beginxxx")
    assert text.endswith("xxxend")
    assert len(text.encode()) <= 200
    kept = text.count("x") + len("beginend") - "characters".count("x")
    assert f"\n… {10_008 - kept:,} characters cut …\n" in text


def test_a_limit_too_small_for_a_marker_keeps_the_head() -> None:
    assert storable("abcdef" * 10, 3) == "abc"
    assert storable("äöü", 3) == "ä"
    assert storable("\0" * 9, 5) == "\\x00"
    assert storable("abc", 0) == storable("abc", -1) == ""


def test_a_subclass_of_str_becomes_plain_text() -> None:
    class Liar(str):
        def __len__(self) -> int:
            return 0

        def __str__(self) -> str:
            raise RuntimeError

    text = storable(Liar("a\0b" * 100), 50)
    assert type(text) is str
    assert len(text.encode()) <= 50


@settings(derandomize=True, max_examples=500)
@given(st.text(st.characters(codec=None) | st.sampled_from("\0\ud800a")), st.integers(0, 200))
def test_pl_03_any_text_becomes_storable_and_fits(text: str, limit: int) -> None:
    stored = storable(text, limit)
    assert "\0" not in stored
    assert len(stored.encode()) <= limit


# --- scrub


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("postgres://u:p@h/db", "postgres://u:***@h/db"),
        ("redis://:secret@h:6379/0", "redis://:***@h:6379/0"),
        ("(amqp://u:p@ss:w@h)", "(amqp://u:***@h)"),
        ("postgres://u:pa/ss@host/db", "postgres://u:***@host/db"),
        ("a http://u:1@h b https://v:2@i", "a http://u:***@h b https://v:***@i"),
        ("postgresql://u:p%40@h,h2:5433/db", "postgresql://u:***@h,h2:5433/db"),
        ("connection failed: host=h password=s3cret user=u", "connection failed: host=h password=*** user=u"),
        ("{'user': 'u', 'password': 'hunter2'}", "{'user': 'u', 'password': ***}"),
        ("PGPASSWORD=abc psql", "PGPASSWORD=*** psql"),
        ("GET /v1?api_key=a1b2c3d4e5&n=1", "GET /v1?api_key=***&n=1"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI7 is wrong", "AWS_SECRET_ACCESS_KEY=*** is wrong"),
        ("{'token': 'abcdefgh', 'n': 1}", "{'token': ***, 'n': 1}"),
        ('{"client_secret": "s3cret-s3cret"}', '{"client_secret": ***}'),
        ("401 for Authorization: Bearer eyJhbGciOi.eyJzdWIiOi.c2ln", "401 for Authorization: Bearer ***"),
        ("{'Authorization': 'Basic dXNlcjpwYXNz'}", "{'Authorization': 'Basic ***'}"),
    ],
)
def test_sk_02_passwords_are_hidden(text: str, scrubbed: str) -> None:
    assert scrub(text) == scrubbed


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:8000/users/@me",
        "http://[::1]:80/x@y",
        "https://u@h/path",
        '{"u":"http://h:80","e":"a@b"}',
        "mail ada@example.org",
        "Invalid password: must have 8 characters",
        "C:\\dir://x",
        "run(token=token, secret=self.secret)",
        "Unexpected token: '}'",
        "bearer authentication failed",
    ],
)
def test_text_without_passwords_is_left_alone(text: str) -> None:
    assert scrub(text) == text


def test_sk_02_messages_tracebacks_causes_and_notes_are_scrubbed() -> None:
    def body() -> None:
        try:
            boom("cannot reach postgres://u:hunter2@h")
        except ValueError as cause:
            error = RuntimeError("gave up on postgres://u:hunter2@h")
            error.add_note("tried redis://:hunter2@h")
            raise error from cause

    error = describe_exception(raised(body), LIMIT)
    assert error.message == "gave up on postgres://u:***@h"
    assert "hunter2" not in error.traceback.replace('boom("cannot reach postgres://u:hunter2@h")', "")
    assert error.traceback.count("***@h") >= 3


def test_sk_02_a_password_at_the_cut_is_hidden_too() -> None:
    secret = "2retnuh"[::-1]  # the traceback shows these lines
    middle = LIMIT // 16
    for at in range(middle - 40, middle + 10):
        for text in (
            "x" * at + f" postgres://u:{secret}@h " + "y" * 100_000,
            "y" * 100_000 + f" postgres://u:{secret}@h " + "x" * at,
        ):
            exc = ValueError(text)
            error = describe_exception(raised(lambda exc=exc: boom(exc)), LIMIT)  # type: ignore[misc]
            assert not any(
                secret[:3] in part or secret[-3:] in part for part in (error.message, error.traceback)
            )


# --- describe_exception


def test_an_exception_is_described_by_class_message_and_traceback() -> None:
    error = describe_exception(raised(boom), LIMIT)
    assert (error.cls, error.message) == ("ValueError", "boom")
    assert error.traceback.startswith("Traceback (most recent call last):\n")
    assert "in boom\n    raise ValueError(message)\n" in error.traceback
    assert error.traceback.endswith("ValueError: boom\n")


def test_a_class_is_named_with_its_module() -> None:
    class Special(Exception):
        pass

    assert describe_exception(Special(), LIMIT).cls.startswith(f"{__name__}.")
    assert describe_exception(Special(), LIMIT).cls.endswith("Special")


def test_an_exception_that_was_never_raised_is_described() -> None:
    assert describe_exception(ValueError(), LIMIT).traceback == "ValueError\n"


@pytest.mark.parametrize("inner", [RuntimeError, RecursionError, SystemExit, KeyboardInterrupt])
def test_ex_01_an_exception_whose_str_raises_is_described(inner: type[BaseException]) -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise inner

        __repr__ = __str__

    error = describe_exception(Broken(), LIMIT)
    assert error.message == f"(str() of this Broken raised {inner.__name__})"


def test_ex_01_exceptions_that_cannot_be_pickled_are_described() -> None:
    class Two(Exception):
        def __init__(self, a: int, b: int) -> None:
            super().__init__(f"{a} {b}")

        def __reduce__(self) -> NoReturn:
            raise TypeError

    class Holder(Exception):
        def __init__(self) -> None:
            self.lock = threading.Lock()
            super().__init__(self.lock)

    assert describe_exception(Two(1, 2), LIMIT).message == "1 2"
    assert "lock" in describe_exception(Holder(), LIMIT).message


def test_ex_01_an_exception_with_hostile_attributes_is_described() -> None:
    class Hostile(Exception):
        @property
        def __cause__(self) -> NoReturn:  # type: ignore[override]
            raise RuntimeError

        @property
        def __notes__(self) -> NoReturn:  # type: ignore[override]
            raise RuntimeError

        __module__ = 7  # type: ignore[assignment]

    error = describe_exception(raised(lambda: (_ for _ in ()).throw(Hostile("x"))), LIMIT)
    assert error.message == "x"
    assert "could not be rendered" in error.traceback
    assert len(error.fingerprint) == 16


def test_a_str_that_returns_no_text_is_survived() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            return 7  # type: ignore[return-value]

    assert "raised TypeError" in describe_exception(Odd(), LIMIT).message


def test_pl_03_nul_and_surrogates_in_an_error_are_escaped() -> None:
    error = describe_exception(raised(lambda: boom("a\0b\udcff")), LIMIT)
    assert error.message == "a\\x00b\\udcff"
    assert error.traceback.endswith("ValueError: a\\x00b\\udcff\n")


def test_ex_03_a_very_deep_recursion_keeps_both_ends() -> None:
    def down(levels: int) -> None:
        if levels == 0:
            boom()
        down(levels - 1)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(11_000)
    try:
        deep, shallow = raised(lambda: down(10_000)), raised(lambda: down(10))
    finally:
        sys.setrecursionlimit(limit)
    error = describe_exception(deep, LIMIT)
    assert "frames left out" in error.traceback
    assert "in raised" in error.traceback
    assert "in boom" in error.traceback
    assert size(error) < 8_000
    assert error.fingerprint == describe_exception(shallow, LIMIT).fingerprint


@pytest.mark.parametrize("unit", ["x", "😀", "\0", "\udcff", "a b\n"])
def test_ex_03_a_50_mb_message_is_cut_without_being_copied(unit: str) -> None:
    message = unit * (50_000_000 // len(unit))
    exc = raised(lambda: boom(message))
    tracemalloc.start()
    try:
        error = describe_exception(exc, LIMIT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
    assert size(error) <= LIMIT
    assert "characters cut" in error.message
    assert "in boom" in error.traceback


def test_ex_03_cycles_of_causes_end() -> None:
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__cause__ = second, first
    error = describe_exception(first, LIMIT)
    assert error.traceback.count("ValueError: first") == 1
    assert (
        error.traceback.index("second")
        < error.traceback.index("direct cause")
        < error.traceback.index("first")
    )
    second.__cause__, second.__context__ = None, first
    assert describe_exception(first, LIMIT).traceback.count("ValueError: first") == 1


def test_a_long_chain_keeps_both_ends() -> None:
    exc: Exception = ValueError("number 0")
    for number in range(1, 10_000):
        newer = ValueError(f"number {number}")
        newer.__context__ = exc
        exc = newer
    error = describe_exception(exc, LIMIT)
    assert "number 0\n" in error.traceback
    assert error.traceback.endswith("number 9999\n")
    assert "9992 exceptions left out" in error.traceback


def test_a_suppressed_context_is_not_shown() -> None:
    def body() -> None:
        try:
            boom("hidden")
        except ValueError:
            raise RuntimeError("shown") from None

    assert "hidden" not in describe_exception(raised(body), LIMIT).traceback.replace('boom("hidden")', "")


def test_groups_are_shown_with_their_members() -> None:
    inner = ExceptionGroup("inner", [OSError("deepest")])
    group = BaseExceptionGroup("outer", [raised(boom), inner])
    error = describe_exception(group, LIMIT)
    assert error.cls == "ExceptionGroup"
    assert "  | ValueError: boom" in error.traceback
    assert "  |   | OSError: deepest" in error.traceback


def test_ex_03_huge_groups_are_bounded() -> None:
    wide = ExceptionGroup("wide", [ValueError(str(n)) for n in range(100_000)])
    assert "more left out" in describe_exception(wide, LIMIT).traceback
    deep: Exception = ValueError("x")
    for _ in range(500):
        deep = ExceptionGroup("deep", [deep])
    assert size(describe_exception(deep, LIMIT)) <= LIMIT
    bushy: Exception = ValueError("x" * 5000)
    for _ in range(12):
        bushy = ExceptionGroup("bushy", [bushy, ValueError("y" * 5000)])
    assert size(describe_exception(bushy, LIMIT)) <= LIMIT


@pytest.mark.parametrize("limit", [0, 1, 20, 100, 1000, 5000])
def test_class_message_and_traceback_together_fit_the_limit(limit: int) -> None:
    for exc in (raised(boom), raised(lambda: boom("ä" * 100_000)), ExceptionGroup("g", [ValueError()])):
        assert size(describe_exception(exc, limit)) <= limit


# --- fingerprints


def here() -> NoReturn:
    boom("here")


def there() -> NoReturn:
    boom("there")


def test_a_fingerprint_depends_on_the_place_and_the_class_and_not_on_the_message() -> None:
    def mark(body: Callable[[], object]) -> str:
        return describe_exception(raised(body), LIMIT).fingerprint

    assert mark(lambda: boom("a")) == mark(lambda: boom("b"))
    assert mark(here) == mark(here)
    assert mark(here) != mark(there)
    assert mark(lambda: int("x")) != mark(lambda: {}["x"])  # type: ignore[index]
    assert len(mark(here)) == 16


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    assert describe_exception(ValueError("any"), LIMIT).fingerprint == "6f5c95f705227d40"


def test_a_fingerprint_looks_at_our_own_frames_and_not_at_those_of_libraries() -> None:
    import json

    loads = json.loads
    error = describe_exception(raised(lambda: loads("{")), LIMIT)
    also = describe_exception(raised(lambda: loads("[1,")), LIMIT)
    assert error.cls == "json.decoder.JSONDecodeError"
    assert error.fingerprint == also.fingerprint


def test_groups_of_different_errors_have_different_fingerprints() -> None:
    one, other = ExceptionGroup("g", [ValueError()]), ExceptionGroup("g", [KeyError()])
    assert describe_exception(one, LIMIT).fingerprint != describe_exception(other, LIMIT).fingerprint
