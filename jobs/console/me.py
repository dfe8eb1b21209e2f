"""The page of an operator's preferences."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from zoneinfo import available_timezones

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone

from jobs.console import sections
from jobs.console.preferences import Preferences, PreferencesForm, keep, preferences


def view(admin: Any, request: HttpRequest) -> HttpResponse:
    """Whoever may see one section has preferences."""
    known = preferences(request)
    form = PreferencesForm(request.POST if request.method == "POST" else None, initial=asdict(known))
    if form.is_bound and form.is_valid():
        said = {name: value for name, value in form.cleaned_data.items() if value}
        keep(request, Preferences(**said))
        admin.message_user(request, "Your preferences were saved.", messages.SUCCESS)
        return HttpResponseRedirect(request.path)
    with timezone.override(known.tz):
        context = {
            **admin.admin_site.each_context(request),
            "title": "Preferences",
            "opts": admin.opts,
            "section": "me",
            "form": form,
            "links": sections.links(request),
            "zones": sorted(name for name in available_timezones() if "/" in name),
            "now": timezone.now(),
        }
        return TemplateResponse(request, "jobs/me.html", context).render()
