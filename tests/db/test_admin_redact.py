"""What a page shows of a payload."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from jobs.console.redact import MASK, shape, values
from jobs.console.show import visible
from jobs.registry import registry
from jobs.secret import is_secret
from tests.db.test_admin_tools import page_of
from tests.factories import schedule


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "PASSWORD",
        "userPassword",
        "db.passwd",
        "token",
        "accessToken",
        "refresh_token",
        "client-secret",
        "Authorization",
        "apiKey",
        "authorisation",
        "api_key",
        "X-API-Key",
        "APIKEY",
        "Cookie",
        "sessionid",
        "credentials",
        "auth",
        "aws_secret_access_key",
        "pwd",
        "DSN",
    ],
)
def test_keys_of_secrets_are_known_in_every_spelling(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize(
    "key", ["to", "author", "authors", "key", "spin", "opinion", "monkey", "subject", ""]
)
def test_ordinary_keys_are_not_secret(key: str) -> None:
    assert not is_secret(key)


def test_a_secret_is_masked_whatever_it_holds_and_however_deep() -> None:
    text = values(
        {"a": [{"token": {"b": ["s1"]}}, {"password": "s2"}, ["Authorization", "s3"]], "api_key": 4711}
    )
    assert not any(secret in text for secret in ("s1", "s2", "s3", "4711"))
    assert text.count(MASK) == 4


def test_passwords_inside_texts_are_hidden() -> None:
    text = values(
        {"url": "postgres://u:hunter2@h/d", "header": "Bearer abcdefghijk", "note": "password=hunter3"}
    )
    assert not any(secret in text for secret in ("hunter2", "hunter3", "abcdefghijk"))


def test_the_shape_has_no_value_and_stays_short() -> None:
    text = shape({"name": "Ada", "n": 3, "on": True, "no": None, "rows": [{"x": 7}] * 1000})
    assert '"name": "text of 3"' in text
    assert "… 997 more …" in text
    assert "7" not in text.replace("997", "")
    assert "Ada" not in text


def test_invisible_characters_become_visible() -> None:
    assert visible("a\u202eb\x1b\0c\n\td") == "a\\u202eb\\u001b\\u0000c\n\td"


def test_paths_that_a_type_declares_are_shown_and_no_others() -> None:
    payload = {
        "order": {"id": 4711, "note": "hidden one"},
        "items": [{"sku": "A1", "price": 3}, {"sku": "B2", "price": 4}],
        "token": "s1",
        "all": {"x": ["y1"], "password": "s2"},
    }
    text = shape(payload, ["order.id", "items.*.sku", "token", "all"])
    assert all(seen in text for seen in ("4711", "A1", "B2", "y1"))
    assert not any(hidden in text for hidden in ("hidden one", "s1", "s2", " 3", " 4,"))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(10**6, 10**9) | st.text(min_size=4, alphabet="xyz"),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abc"), inner),
    )
)
def test_a_path_that_leads_nowhere_shows_nothing(value: Any) -> None:
    assert shape(value, ["q.r", "a.b.c.q", "*.q"]) == shape(value)


def test_the_page_shows_what_the_type_declares(admin_client: Client) -> None:
    known = registry.require("test.echo")
    assert known
    registry.remove("test.echo")
    registry.add(replace(known, shown=("value",)))
    try:
        page = admin_client.get(
            page_of(schedule("test.echo", {"value": "seen-by-all", "other": "kept-back"}))
        ).text
    finally:
        registry.remove("test.echo")
        registry.add(known)
    assert "seen-by-all" in page
    assert "kept-back" not in page
