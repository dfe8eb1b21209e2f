"""A real browser on a real server, under the strictest policy; every message on its console is a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
QUICKER = "Autofocus processing was blocked"
"""Chromium says so when the visitor has clicked into a page before it was complete."""
LOOKS = [(scheme, size) for size in SIZES for scheme in ("light", "dark")]


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


@pytest.fixture
def maria(transactional_db: None) -> User:
    """An operator who may do everything."""
    User.objects.all().delete()  # an emptied database still has them
    return User.objects.create_superuser("maria", password="x")


class Visit:
    """One operator's browser. `close()` fails on whatever the console said, and on requests to elsewhere."""

    def __init__(
        self, chromium: Any, url: str, user: User, scheme: str, size: str, *, script: bool = True
    ) -> None:
        self.url, self.scheme, self.size = url, scheme, size
        width, height = SIZES[size]
        self.context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            java_script_enabled=script,
            reduced_motion="reduce",
        )
        client = Client()
        client.force_login(user)
        self.context.add_cookies(
            [{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": url}]
        )
        self.said: list[str] = []
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.page.on("console", lambda message: self._said(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self._dialog(dialog))
        self.page.on("request", self._request)
        self.page.route("**/favicon.ico", lambda route: route.fulfill(status=204))  # that of the project

    def go(self, path: str) -> Any:
        response = self.page.goto(self.url + path)
        assert response is not None
        assert response.status == 200, (path, response.status)
        return self.page

    def check(self, axe: str) -> None:
        assert self.wrong(axe) == []

    def wrong(self, axe: str) -> list[str]:
        """Violations of WCAG 2.2 A and AA, and whether the page is wider than the window."""
        self.page.wait_for_load_state("load")  # before its styles are there, everything is too small
        self.page.evaluate(axe)
        found = self.page.evaluate(
            "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],"
            " resultTypes: ['violations'], preload: false})"
        )
        path = self.page.url.removeprefix(self.url)
        wrong = [
            f"{path}: {each['id']}: {node['target']}: {node['failureSummary']}"
            for each in found["violations"]
            for node in each["nodes"]
        ]
        over = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return wrong + ([f"{path}: {over} px too wide"] if over > 0 else [])

    def shoot(self, name: str) -> None:
        """A picture, where SCREENSHOTS names a folder for them."""
        if folder := os.environ.get("SCREENSHOTS"):
            path = Path(folder) / f"{name}-{self.size}-{self.scheme}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(path), full_page=True)

    def close(self) -> None:
        self.context.close()
        assert self.said == []

    def _said(self, message: str) -> None:
        if QUICKER not in message:
            self.said.append(message)

    def _dialog(self, dialog: Any) -> None:
        self.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "about:")):
            self.said.append(f"a request to {request.url}")


@pytest.fixture(params=LOOKS, ids=["-".join(look) for look in LOOKS])
def visit(request: pytest.FixtureRequest, chromium: Any, live_server: Any, maria: User) -> Iterator[Visit]:
    """In each theme, on each size of screen."""
    made = Visit(chromium, live_server.url, maria, *request.param)
    yield made
    made.close()


@pytest.fixture
def desk(chromium: Any, live_server: Any, maria: User) -> Iterator[Visit]:
    made = Visit(chromium, live_server.url, maria, "light", "desktop")
    yield made
    made.close()


@pytest.fixture
def plain(chromium: Any, live_server: Any, maria: User) -> Iterator[Visit]:
    """A browser without script."""
    made = Visit(chromium, live_server.url, maria, "light", "desktop", script=False)
    yield made
    made.close()
