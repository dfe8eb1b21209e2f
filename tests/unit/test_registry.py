"""What `@job_type` refuses, before a worker or a caller could stumble over it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from jobs.errors import CronError, NotConfigured, Retry, Snooze
from jobs.registry import cron, job_type, registry


def handler(context: Any) -> None:
    """Does nothing."""


def yields(context: Any) -> Iterator[int]:
    yield 1


async def ayields(context: Any) -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("name", ["", " x", "x\n", "a\0b", "\ud835", "x" * 101, 5])
def test_un_01_a_name_that_no_job_could_have_is_refused_by_its_decorator(name: Any) -> None:
    for options in ({"name": name}, {"name": "test.named", "queue": name or " "}):
        with pytest.raises(NotConfigured, match=r"its (name|queue)"):
            job_type(**options)(handler)
    assert registry.get(name) is None


@pytest.mark.parametrize("field", ["tenant", "name"])
def test_pl_04_a_declared_cron_has_a_name_and_a_tenant_that_can_be_stored(field: str) -> None:
    for value in (" x", "a\0b", "\ud835", "x" * 201):
        options: dict[str, Any] = {field: value}
        with pytest.raises(CronError, match=field):
            cron("0 1 * * *", **options)


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("every", {"expression": "", "every": 300}),
        ("overlap", {"overlap": "forbid"}),
        ("overlap", {"overlap": None}),
        ("spread", {"spread": 5}),
        ("spread", {"spread": None}),
        ("spread", {"spread": timedelta(days=2)}),
    ],
)
def test_pl_06_what_a_dispatcher_could_not_store_of_a_declared_cron_is_refused(
    field: str, options: dict[str, Any]
) -> None:
    with pytest.raises(CronError) as refused:
        cron(**{"expression": "0 1 * * *"} | options)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("option", "value"), [("timeout", 5), ("timeout", "5 s"), ("timeout", timedelta.max), ("backoff", 5)]
)
def test_bx_03_a_time_that_a_worker_would_stumble_over_is_refused(option: str, value: Any) -> None:
    with pytest.raises(NotConfigured, match=f"{option} is"):
        job_type("test.times", **{option: value})(handler)


@pytest.mark.parametrize("body", [lambda: None, lambda *, context: None, lambda **options: None, None, dict])
def test_bx_01_a_handler_that_takes_no_context_is_refused(body: Any) -> None:
    with pytest.raises(NotConfigured, match="no context"):
        job_type("test.contextless")(body)


class Calls:
    async def __call__(self, context: Any) -> None:
        """Does nothing."""


@pytest.mark.parametrize(
    ("body", "is_async", "origin"),
    [
        (partial(handler), False, "functools.partial"),
        (Calls(), True, f"{__name__}.Calls"),
        (handler, False, f"{__name__}.handler"),
    ],
)
def test_pl_06_a_handler_may_be_any_callable(body: Any, is_async: bool, origin: str) -> None:
    made = job_type("test.callable")(body)
    try:
        assert (made.is_async, made.origin) == (is_async, origin)
    finally:
        registry.remove("test.callable")


@pytest.mark.parametrize("most", [0, -1, 10_001, 2**31, True, 2.5, "3"])
def test_ld_03_a_number_of_attempts_that_no_job_could_have_is_refused(most: Any) -> None:
    with pytest.raises(NotConfigured, match="max_attempts"):
        job_type("test.attempts", max_attempts=most)(handler)


@pytest.mark.parametrize("body", [yields, ayields])
def test_bx_01_a_handler_that_yields_would_never_run_and_is_refused(body: Any) -> None:
    with pytest.raises(NotConfigured, match="yields"):
        job_type("test.yields")(body)


@pytest.mark.parametrize("span", [5, 2.5, "1 s", None, True])
def test_dx_01_a_wait_that_is_no_timedelta_is_an_error_of_the_handler(span: Any) -> None:
    with pytest.raises(TypeError, match="not a timedelta"):
        Snooze(span)
    if span is not None:
        with pytest.raises(TypeError, match="not a timedelta"):
            Retry(after=span)


@pytest.mark.parametrize(
    "path", ["", "order.", ".id", "items.*.sku", "items.0", "a b", "headers.1", "x:y", "-x"]
)
def test_a_searchable_path_leads_by_keys_alone(path: str) -> None:
    with pytest.raises(NotConfigured, match="no path of keys"):
        job_type("test.searchable", searchable=[path])(handler)
    assert registry.get("test.searchable") is None


@pytest.mark.parametrize(
    "path", ["token", "auth.user", "order.apiKey", "user.password.hash", "card-pin", "SESSION_ID"]
)
def test_what_a_key_calls_secret_cannot_be_made_searchable(path: str) -> None:
    with pytest.raises(NotConfigured, match="is secret"):
        job_type("test.searchable", searchable=["order.id", path])(handler)


def test_searchable_paths_are_kept() -> None:
    made = job_type("test.searchable", searchable="order.id")(handler)
    registry.remove("test.searchable")
    assert made.searchable == ("order.id",)
