"""What is said of a group of errors: known, ignored or mended, for how long, and who takes care of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.views.defaults import permission_denied

from jobs import clock, operator
from jobs.console import remember, sections, show
from jobs.console.origin import person
from jobs.errors import InvalidValue
from jobs.models import Triage, TriageState
from jobs.scope import scope_of
from jobs.triage import NEW

LASTS = {"1h": "an hour", "8h": "8 hours", "1d": "a day", "7d": "a week", "30d": "30 days"}
_UNITS = {"h": "hours", "d": "days"}
FINGERPRINT = 16


class TriageForm(forms.Form):
    required_css_class = "required"

    state = forms.ChoiceField(
        choices=[(NEW, "new: nobody has dealt with it"), *TriageState.choices],
        help_text="What is known or ignored is no problem of the overview any more.",
    )
    lasts = forms.ChoiceField(
        label="For",
        required=False,
        choices=[("", "good"), *LASTS.items()],
        help_text="Then it is new again.",
    )
    owner = forms.CharField(
        label="Taken care of by",
        required=False,
        max_length=150,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )
    note = forms.CharField(
        required=False,
        max_length=operator.REASON_BYTES,
        help_text="Shown beside the errors: a ticket, what is known, what will be done.",
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )
    seen = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)

    def clean_seen(self) -> datetime | None:
        try:
            return datetime.fromisoformat(self.cleaned_data["seen"]) if self.cleaned_data["seen"] else None
        except ValueError:
            raise forms.ValidationError("This form is broken: load it again.") from None


def view(admin: Any, request: HttpRequest) -> HttpResponse:
    """GET asks, POST says it. `fingerprint` in the address names the group."""
    if not admin.has_view_permission(request) or scope_of(request.user) is not None:
        raise PermissionDenied
    fingerprint = request.GET.get("fingerprint", "").replace("\0", "")[:FINGERPRINT]
    back = sections.address("jobs_job_errors", admin.admin_site.name)
    try:
        operator.require(person(request), operator.TRIAGE, "triage", {"error": fingerprint})
    except operator.Denied as error:
        return permission_denied(request, error)
    if not fingerprint:
        admin.message_user(request, "No group of errors was named.", messages.WARNING)
        return HttpResponseRedirect(back)
    form = TriageForm(request.POST) if request.method == "POST" else TriageForm(initial=_known(fingerprint))
    if form.is_bound and form.is_valid():
        said = form.cleaned_data
        try:
            operator.triage(
                person(request), fingerprint, said["state"], owner=said["owner"], note=said["note"],
                until=_until(said["lasts"]), seen=said["seen"],
            )  # fmt: skip
        except InvalidValue as error:
            form.add_error(None, error.message)
        else:
            remember.forget()
            admin.message_user(request, f"These errors are {said['state']}.", messages.SUCCESS)
            return HttpResponseRedirect(back)
    context = {
        **admin.admin_site.each_context(request),
        "title": f"Errors {show.visible(fingerprint)}",
        "opts": admin.opts,
        "section": "errors",
        "line": f"state:failed error:{fingerprint} finished:last-24h",
        "back": back,
        "form": form,
    }
    return TemplateResponse(request, "jobs/triage.html", context)


def _known(fingerprint: str) -> dict[str, Any]:
    row = Triage.objects.filter(pk=fingerprint).first()
    if row is None:
        return {"state": TriageState.KNOWN}
    return {"state": row.state, "owner": row.owner, "note": row.note, "seen": row.at.isoformat()}


def _until(lasts: str) -> datetime | None:
    return clock.now() + timedelta(**{_UNITS[lasts[-1]]: int(lasts[:-1])}) if lasts else None
