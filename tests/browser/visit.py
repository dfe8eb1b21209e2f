"""One operator's browser: it counts clicks, judges pages, and lets nothing pass that its console said."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from tests.browser.traffic import Traffic

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
SCHEMES = ("light", "dark")
QUICKER = "Autofocus processing was blocked"
"""Chromium says so when the visitor has clicked into a page before it was complete."""
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
OF_COLOUR = ["color-contrast", "link-in-text-block"]
"""The rules of axe that another theme can break."""
PATIENCE = 45_000
"""Milliseconds: for a machine that has much else to do."""
HIDE = """hidden => {
    if (hidden) Object.defineProperty(document, "hidden", {get: () => true, configurable: true});
    else delete document.hidden;
    document.dispatchEvent(new Event("visibilitychange"));
}"""
AXE = "asked => axe.run(document, {runOnly: asked, resultTypes: ['violations'], preload: false})"


class Visit:
    """`close()` fails on whatever the console said, and on requests to elsewhere."""

    def __init__(
        self,
        chromium: Any,
        traffic: Traffic,
        url: str,
        user: User,
        size: str = "desktop",
        scheme: str = "light",
        *,
        script: bool = True,
    ) -> None:
        self.url, self.scheme, self.size, self.traffic = url, scheme, size, traffic
        self.clicks = 0
        self._stills = 0
        self.context = chromium.new_context(
            viewport=self._viewport(),
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
        self.forgiven: list[str] = [QUICKER]
        """What the console may say."""
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self._dialog(dialog))
        self.page.on("request", self._request)
        self.page.route("**/favicon.ico", lambda route: route.fulfill(status=204))  # that of the project

    def go(self, path: str) -> Any:
        response = self.page.goto(self.url + path)
        assert response is not None
        assert response.status == 200, (path, response.status)
        return self.page

    def click(self, target: Any) -> None:
        """On what leads to another page, or posts a form; done when that page has loaded."""
        with self.page.expect_navigation():
            target.click()
        self.clicks += 1

    def follow(self, name: str | re.Pattern[str], place: Any = None) -> None:
        self.click((place or self.page).get_by_role("link", name=name).first)

    def press(self, name: str | re.Pattern[str]) -> None:
        self.click(self.page.get_by_role("button", name=name).first)

    def save(self) -> None:
        """The form's own button: on a console page it says what it does."""
        self.click(self.page.locator("input[type=submit].default"))

    def search(self, line: str) -> None:
        """Enter in the box on top of every page counts as a click."""
        box = self.page.locator("#console-q")
        box.fill(line)
        with self.page.expect_navigation():
            box.press("Enter")
        self.clicks += 1

    def content(self) -> str:
        text: str = self.page.locator("#content").inner_text()
        return text

    def check(self, axe: str) -> None:
        wrong = self.wrong(axe)
        assert not wrong, "\n".join(wrong)

    def wrong(self, axe: str, *, in_both: bool = False) -> list[str]:
        """Violations of WCAG 2.2 A and AA, `in_both` themes, and whether the page is wider than the window."""
        self.page.wait_for_load_state("load")  # before its styles are there, everything is too small
        with self.still():
            self.page.evaluate(axe)
            wrong = self._violations(WCAG)
            if in_both:
                other = SCHEMES[self.scheme == SCHEMES[0]]
                self.page.emulate_media(color_scheme=other)
                wrong += [
                    f"{other}: {each}" for each in self._violations({"type": "rule", "values": OF_COLOUR})
                ]
                self.page.emulate_media(color_scheme=self.scheme)
        over = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return wrong + ([f"{self.path}: {over} px too wide"] if over > 0 else [])

    def shoot(self, name: str) -> None:
        """Pictures in both themes, where SCREENSHOTS names a folder for them."""
        if not (folder := os.environ.get("SCREENSHOTS")):
            return
        Path(folder).mkdir(parents=True, exist_ok=True)
        with self.still():
            for scheme in SCHEMES:
                self.page.emulate_media(color_scheme=scheme)
                path = Path(folder) / f"{name}-{self.size}-{scheme}.png"
                self.page.screenshot(path=str(path), full_page=True)
            self.page.emulate_media(color_scheme=self.scheme)

    @contextmanager
    def still(self) -> Iterator[None]:
        """The page does not refresh itself meanwhile: it takes itself for hidden. Afterwards it does so at once, under
        what the test does next."""
        self._stills += 1
        if self._stills == 1:
            self.page.evaluate(HIDE, True)
        yield
        self._stills -= 1
        if self._stills == 0:
            self.page.evaluate(HIDE, False)

    def resize(self, size: str) -> None:
        self.size = size
        self.page.set_viewport_size(self._viewport())

    def close(self) -> None:
        """When this returns, the server does nothing more for it: a late request would meet the next test's rows."""
        self.context.close()
        self.traffic.wait()
        assert [each for each in self.said if not any(words in each for words in self.forgiven)] == []

    @property
    def path(self) -> str:
        address: str = self.page.url
        return address.removeprefix(self.url)

    def _viewport(self) -> dict[str, int]:
        width, height = SIZES[self.size]
        return {"width": width, "height": height}

    def _violations(self, asked: Any) -> list[str]:
        return [
            f"{self.path}: {each['id']}: {node['target']}: {node['failureSummary']}"
            for each in self.page.evaluate(AXE, asked)["violations"]
            for node in each["nodes"]
        ]

    def _dialog(self, dialog: Any) -> None:
        self.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "about:")):
            self.said.append(f"a request to {request.url}")
