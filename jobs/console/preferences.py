"""What an operator likes: zone, refresh, density, keys. Kept in a row of the user's; the session, which is read anyway, has
a copy, so that a page pays no statement for it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.http import HttpRequest
from django.utils import timezone

from jobs.cron import zone
from jobs.errors import CronError
from jobs.models import Preference

KEPT = "jobs_console"
"""In the session."""
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
    """Those of the request's user; another browser of theirs follows a change at its next login."""
    known: Preferences | None = getattr(request, "_console_preferences", None)
    if known is None:
        known = _cleaned(_said(request))
        request._console_preferences = known  # type: ignore[attr-defined]
    return known


def keep(request: HttpRequest, chosen: Preferences) -> None:
    user: Any = request.user
    Preference.objects.update_or_create(user_id=user.pk, defaults=asdict(chosen))
    request.session[KEPT] = asdict(chosen)


def _said(request: HttpRequest) -> Any:
    session, user = getattr(request, "session", None), getattr(request, "user", None)
    if session is None or user is None or not user.is_authenticated:
        return {}
    if KEPT not in session:
        names = [field.name for field in fields(Preferences)]
        session[KEPT] = Preference.objects.filter(pk=user.pk).values(*names).first() or {}
    return session[KEPT]


def _cleaned(said: Any) -> Preferences:
    """What cannot be understood counts as not said: a zone may be gone."""
    form = PreferencesForm(said if isinstance(said, dict) else {})
    form.full_clean()
    return Preferences(**{name: value for name, value in form.cleaned_data.items() if value})


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
