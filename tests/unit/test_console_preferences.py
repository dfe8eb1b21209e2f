"""What a browser keeps for its operator."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from jobs.console.preferences import COOKIE, Preferences, keep, preferences


def read(cookie: str) -> Preferences:
    request = RequestFactory().get("/")
    request.COOKIES[COOKIE] = cookie
    return preferences(request)


def test_what_is_kept_is_read_again() -> None:
    chosen = Preferences("Europe/Berlin", "adaptive", "compact", "off")
    response = HttpResponse()
    keep(response, chosen, secure=True)
    cookie = response.cookies[COOKIE]
    assert read(cookie.value) == chosen
    assert cookie["httponly"]
    assert cookie["secure"]
    assert cookie["samesite"] == "Lax"


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "zone=Mars/Olympus",
        "zone=../../etc/passwd",
        "refresh=0",
        "keys=<script>",
        "x" * 10_000,
        "zone=%00",
        "=&=&",
    ],
)
def test_what_cannot_be_read_counts_as_not_said(cookie: str) -> None:
    assert read(cookie) == Preferences()


def test_one_that_is_wrong_leaves_the_others() -> None:
    assert read(urlencode({"zone": "Mars", "refresh": "60"})) == Preferences(refresh="60")
