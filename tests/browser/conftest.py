"""A real browser on a real server, under the strictest policy; every message on its console is a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.console import remember
from tests.browser.shop import alone
from tests.browser.traffic import Traffic
from tests.browser.visit import Visit
from tests.browser.world import World, build
from tests.factories import Connection

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
LOOKS = [("desktop", "light"), ("phone", "dark")]
"""`test_pages` sees every page in both themes on both."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    # Playwright runs a loop of its own in this thread; Django would take the test for a coroutine.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, as its package carries it."""
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")


@pytest.fixture(scope="session")
def traffic() -> Iterator[Traffic]:
    made = Traffic()
    yield made
    made.close()


@pytest.fixture
def maria(transactional_db: None) -> User:
    """An operator who may do everything."""
    User.objects.all().delete()  # an emptied database still has them
    return User.objects.create_superuser("maria", password="x")


@pytest.fixture
def world(connection: Connection, maria: User) -> Iterator[World]:
    """Some of everything; pages that need more say so."""
    remember.forget()
    yield build(connection, maria, rich=False)
    remember.forget()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A page has much to be looked at. What is interrupted by its limit ends the browser for all tests after it."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.timeout(1200))


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What gives up after a while has tests of its own; here the machine may be slow."""
    for name in ("guard", "count"):
        monkeypatch.setattr(f"jobs.search.{name}.PATIENCE", timedelta(seconds=30))


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job types of `world`."""
    alone(monkeypatch)


@pytest.fixture(params=LOOKS, ids=["-".join(look) for look in LOOKS])
def visit(
    request: pytest.FixtureRequest, chromium: Any, traffic: Traffic, live_server: Any, maria: User
) -> Iterator[Visit]:
    """On each size of screen."""
    made = Visit(chromium, traffic, live_server.url, maria, *request.param)
    yield made
    made.close()


@pytest.fixture
def desk(chromium: Any, traffic: Traffic, live_server: Any, maria: User) -> Iterator[Visit]:
    made = Visit(chromium, traffic, live_server.url, maria)
    yield made
    made.close()


@pytest.fixture
def plain(chromium: Any, traffic: Traffic, live_server: Any, maria: User) -> Iterator[Visit]:
    """A browser without script."""
    made = Visit(chromium, traffic, live_server.url, maria, script=False)
    yield made
    made.close()
