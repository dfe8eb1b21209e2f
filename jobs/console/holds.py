"""Holds: what does not start, by whose will and until when; made, extended and lifted here, each with a record."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.db.models import Q
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.defaults import permission_denied

from jobs import operator
from jobs.console import remember, show
from jobs.console.audited import Audited
from jobs.console.origin import person
from jobs.console.page import console_page, in_zone
from jobs.console.sections import search
from jobs.errors import InvalidValue, UnknownTenant
from jobs.models import Hold, HoldScope

CHANGE = "jobs.change_hold"
RECENT = timedelta(days=7)
SHOWN = 200
LOOKED_AT = "-7d..now"
"""Due times of the jobs to which a hold's row leads."""


class LiftForm(forms.Form):
    drain = forms.IntegerField(
        label="Starts a second",
        required=False,
        min_value=1,
        max_value=1_000_000,
        help_text="At most, until what waited is gone; empty: as fast as limits let it.",
    )
    reason = forms.CharField(
        required=False,
        max_length=operator.REASON_BYTES,
        help_text="Kept in the audit, for whoever asks later.",
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )


class HoldAdmin(Audited):
    """Its list is our own page; a hold is lifted, never deleted."""

    fieldsets = (
        (
            None,
            {
                "fields": ("scope", "key", "reason", "until"),
                "description": "From the moment this is saved nothing of it starts. What runs goes on, what comes due waits "
                "and nothing is lost. Without an end it holds until somebody lifts it.",
            },
        ),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """What is held does not change: lift it and hold another."""
        return ("scope", "key") if obj else ()

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        kwargs["labels"] = {"scope": "What", "key": "Its name"}
        return super().get_form(request, obj, change, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        lift = self.admin_site.admin_view(in_zone(self.lift_view))
        return [path("<path:object_id>/lift/", lift, name="jobs_hold_lift"), *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return console_page(self, request, "holds", "Holds", gather, permission="jobs.view_hold")

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        try:
            return super().add_view(request, form_url, extra_context)
        except (InvalidValue, UnknownTenant) as error:
            self.message_user(request, f"Nothing is held: {error}", messages.ERROR)
            again = {name: request.POST.get(name, "")[:500] for name in ("scope", "key", "reason")}
            return HttpResponseRedirect(f"{request.path}?{urlencode(again)}")

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
        else:
            made = operator.pause(person(request), obj.scope, obj.key, reason=obj.reason, until=obj.until)
            obj.pk = made.pk  # for the message, and Django's own log
        remember.forget()

    def lift_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks how what waited shall come back; posted, it lifts the hold."""
        hold = self.get_object(request, object_id)
        if hold is None:
            raise Http404
        try:
            operator.require(person(request), CHANGE, "resume", {"hold": hold.pk})
        except (
            operator.Denied
        ) as error:  # returned, not raised, so that a request's transaction keeps the record
            return permission_denied(request, error)
        form = LiftForm(request.POST if request.method == "POST" else None)
        if form.is_bound and form.is_valid():
            self._lift(request, hold, form.cleaned_data["drain"], form.cleaned_data["reason"])
            return HttpResponseRedirect(reverse("admin:jobs_hold_changelist"))
        context = {
            **self.admin_site.each_context(request),
            "title": f"Resume {show.target(hold)}",
            "opts": self.opts,
            "section": "holds",
            "hold": hold,
            "form": form,
        }
        return TemplateResponse(request, "jobs/lift.html", context)

    def _lift(self, request: HttpRequest, hold: Hold, rate: int | None, reason: str) -> None:
        try:
            operator.resume(person(request), hold, rate=rate, reason=reason)
        except InvalidValue as error:  # somebody was first
            self.message_user(request, str(error), messages.WARNING)
        else:
            self.message_user(request, f"{show.target(hold)} is no longer held.", messages.SUCCESS)
        remember.forget()


def gather(request: HttpRequest) -> dict[str, Any]:
    """What is held, what comes back slowly, and what was held in the last days."""
    now = timezone.now()
    found = list(
        Hold.objects.filter(Q(drained_at__isnull=True) | Q(drained_at__gt=now - RECENT)).order_by("-id")[
            : SHOWN + 1
        ]
    )
    held = [hold for hold in found if hold.until is None or hold.until > now]
    for hold in held:
        of = {} if hold.scope == HoldScope.ALL else {hold.scope: hold.key}
        hold.jobs_url = search(**of, **{"is": "held"}, due=LOOKED_AT)  # type: ignore[attr-defined]
    draining = [hold for hold in found if hold not in held and hold.drain and hold.drained_at is None]
    return {
        "held": held,
        "draining": draining,
        "over": [hold for hold in found[:SHOWN] if hold not in held and hold not in draining],
        "is_cut": len(found) > SHOWN,
        "may_add": request.user.has_perm("jobs.add_hold"),
        "may_change": request.user.has_perm(CHANGE),
        "may_search": request.user.has_perm("jobs.view_job"),
        "recent": RECENT,
    }
