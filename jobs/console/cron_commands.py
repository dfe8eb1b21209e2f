"""Pause, resume, run now and backfill: asked for by POST, confirmed with a reason, recorded. GET does nothing."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.db import router, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.defaults import permission_denied

from jobs import operator
from jobs.console import show
from jobs.console.origin import person
from jobs.console.widgets import SplitMoment
from jobs.errors import SchedulerError
from jobs.models import CronDefinition
from jobs.text import storable

if TYPE_CHECKING:
    from jobs.console.cron import CronDefinitionAdmin

PERMISSION = "jobs.change_crondefinition"
EFFECTS = {
    "pause": "It fires nothing until it is resumed. What was written ahead is withdrawn; what runs goes on.",
    "resume": "It fires from now on. The slots of the pause are kept in the ledger as skipped and never run.",
    "run": "One run at once, whatever the rule, the pause and the overlap policy say.",
    "backfill": "Runs the slots of a stretch of the past that have not run. First it only counts them.",
}
LABELS = {"pause": "Pause", "resume": "Resume", "run": "Run now", "backfill": "Backfill"}


class CommandForm(forms.Form):
    required_css_class = "required"
    reason = forms.CharField(
        max_length=operator.REASON_BYTES,
        required=False,
        help_text="Kept in the audit, and for a pause beside the definition.",
        widget=forms.TextInput(attrs={"class": "vTextField", "autofocus": True}),
    )


class BackfillForm(CommandForm):
    start = forms.SplitDateTimeField(help_text="The first slot may lie here.", widget=SplitMoment)
    end = forms.SplitDateTimeField(help_text="The last slot may lie here.", widget=SplitMoment)
    rate = forms.FloatField(initial=1, help_text="Jobs due per second, up to 1000.")
    overlap = forms.ChoiceField(
        choices=[("allow_all", "side by side"), ("buffer_all", "one after another")],
        help_text="How the runs of this backfill stand to each other.",
    )
    dry_run = forms.BooleanField(required=False, initial=True, label="Only count", help_text="Runs nothing.")


def view(admin: CronDefinitionAdmin, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
    """The address of all four: first it asks, then, confirmed, it does."""
    using = router.db_for_write(CronDefinition)
    target = {"crondefinition": storable(object_id, 40)}
    try:
        operator.require(person(request), PERMISSION, storable(verb, 20), target, using=using)
    except operator.Denied as error:  # returned, not raised, so that a request's transaction keeps the record
        return permission_denied(request, error)
    definition = admin.get_object(request, object_id)
    if definition is None or verb not in EFFECTS:
        raise Http404
    form_class = BackfillForm if verb == "backfill" else CommandForm
    form = form_class(request.POST if "confirmed" in request.POST else None)
    if form.is_bound and form.is_valid():
        try:
            with transaction.atomic(using):
                told = _do(definition, verb, form.cleaned_data)
                _record(request, definition, verb, form.cleaned_data, using)
        except SchedulerError as error:
            form.add_error(None, str(error))
        else:
            admin.message_user(request, told, messages.SUCCESS)
            if not form.cleaned_data.get("dry_run"):
                return HttpResponseRedirect(reverse("admin:jobs_crondefinition_change", args=[definition.pk]))
    return _ask(admin, request, definition, verb, form)


def buttons(definition: CronDefinition) -> list[tuple[str, str]]:
    """(verb, label) of those that make sense now."""
    verbs = ["pause" if definition.enabled else "resume", "run", "backfill"]
    return [(verb, LABELS[verb]) for verb in verbs]


def _do(definition: CronDefinition, verb: str, asked: dict[str, Any]) -> str:
    name = show.visible(definition.name)
    if verb == "pause":
        return f"{name} is paused" if definition.pause(asked["reason"]) else f"{name} was paused already"
    if verb == "resume":
        return f"{name} fires again" if definition.resume() else f"{name} was not paused"
    if verb == "run":
        return f"{name} runs now: job {definition.run_now()}"
    found = definition.backfill(
        asked["start"], asked["end"], rate=asked["rate"], overlap=asked["overlap"], dry_run=asked["dry_run"]
    )
    would = "would run" if asked["dry_run"] else "will run"
    return f"{name}: {found.slots} slots, {found.ran} of them have run; {found.missing} {would}"


def _record(
    request: HttpRequest, definition: CronDefinition, verb: str, asked: dict[str, Any], using: str
) -> None:
    if asked.get("dry_run"):
        return
    more = {name: _plain(value) for name, value in asked.items() if name not in ("reason", "dry_run")}
    target = {"crondefinition": str(definition), "id": definition.pk, **more}
    operator.record(
        person(request), verb, target, asked["reason"], using, changed=1, tenant_id=definition.tenant_id
    )


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _ask(
    admin: CronDefinitionAdmin, request: HttpRequest, definition: CronDefinition, verb: str, form: forms.Form
) -> TemplateResponse:
    context = {
        **admin.admin_site.each_context(request),
        "title": f"{LABELS[verb]}: {show.visible(definition.name)}",
        "opts": admin.opts,
        "media": admin.media + form.media,
        "definition": definition,
        "verb": verb,
        "label": LABELS[verb],
        "effect": EFFECTS[verb],
        "form": form,
    }
    return TemplateResponse(request, "jobs/cron_confirm.html", context)
