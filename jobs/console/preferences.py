"""What an operator likes: zone, refresh, density, keys. Kept in a cookie, so that reading it costs no statement."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode
from zoneinfo import ZoneInfo

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from jobs.cron import zone
from jobs.errors import CronError

COOKIE = "jobs_console"
YEAR = 365 * 24 * 3600
REFRESH = ("15", "5", "60", "adaptive", "off")
DENSITY = ("comfortable", "compact")


@dataclass(frozen=True)
class Preferences:
    zone: str = ""
    """Empty: the zone of the project."""
    refresh: str = "15"
    density: str = "comfortable"
    keys: str = "on"

    @property
    def tz(self) -> Any:
        return ZoneInfo(self.zone) if self.zone else timezone.get_default_timezone()


def preferences(request: HttpRequest) -> Preferences:
    """Those of this browser. What cannot be read counts as not said."""
    known: Preferences | None = getattr(request, "_console_preferences", None)
    if known is None:
        form = PreferencesForm(dict(parse_qsl(request.COOKIES.get(COOKIE, "")[:200])))
        form.full_clean()
        said = {name: value for name, value in form.cleaned_data.items() if value}
        known = Preferences(**said)
        request._console_preferences = known  # type: ignore[attr-defined]
    return known


def keep(response: HttpResponse, chosen: Preferences, *, secure: bool) -> None:
    response.set_cookie(
        COOKIE, urlencode(asdict(chosen)), max_age=YEAR, httponly=True, samesite="Lax", secure=secure
    )


class PreferencesForm(forms.Form):
    zone = forms.CharField(
        label="Time zone",
        required=False,
        max_length=64,
        help_text="A name such as Europe/Berlin; empty: the project's own.",
        widget=forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
    )
    refresh = forms.ChoiceField(
        required=False,
        help_text="Adaptive: every 5 seconds while you move, every minute when you do not. A hidden page never asks.",
        choices=[
            ("15", "every 15 seconds"),
            ("5", "every 5 seconds"),
            ("60", "every minute"),
            ("adaptive", "adaptive"),
            ("off", "only when I reload"),
        ],
    )
    density = forms.ChoiceField(required=False, choices=[(name, name) for name in DENSITY])
    keys = forms.ChoiceField(
        label="Keyboard shortcuts", required=False, choices=[("on", "on"), ("off", "off")]
    )

    def clean_zone(self) -> str:
        name: str = self.cleaned_data["zone"]
        try:
            if name:
                zone(name)
        except CronError:
            raise forms.ValidationError("There is no time zone of this name.") from None
        return name
