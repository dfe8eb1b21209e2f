"""The form of a cron definition: whatever the ticker would stumble over is refused here, beside its field."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput
from django.utils import timezone

from jobs.conf import conf
from jobs.cron import zone
from jobs.errors import CronError, InvalidJob
from jobs.ids import IdRun
from jobs.models import CronDefinition
from jobs.newjob import Frame, NewJob, prepare
from jobs.payload import encode
from jobs.registry import registry

if TYPE_CHECKING:
    _Form = forms.ModelForm[CronDefinition]
else:
    _Form = forms.ModelForm

RULE = {"expression", "timezone", "dst", "every", "anchor_at", "run_at", "start_at", "end_at"}
HELP = {
    "expression": "Five fields: minute, hour, day of month, month, day of week; or @daily and its kind.",
    "every": "Instead of an expression: an interval, as hours:minutes:seconds, in elapsed time.",
    "anchor_at": "One slot of the interval; empty: the start, or when the definition was made.",
    "run_at": "Instead of an expression: one moment.",
    "note": "Why it is paused.",
    "max_runs": "It ends after so many runs.",
    "jitter": "Each run starts up to so much later, by a hash of its slot; before the next slot.",
    "spread": "All runs start the same while later, up to so much, by a hash of the definition.",
    "overlap": "When a slot comes while an earlier run has not ended.",
    "timezone": "An IANA name such as Europe/Berlin. The rule is read on that zone's wall clock.",
    "dst": "cron: a skipped time runs when the gap ends, a repeated one once. skip: a skipped time is dropped. "
    "literal: every minute whose reading matches.",
    "payload": "JSON object: the arguments of the handler.",
    "queue": "Empty: the queue of the type.",
    "priority": "-100 to 100, larger first, within a tenant.",
    "max_attempts": "Empty: as the type says.",
    "enabled": "Off: nothing fires, and what was written ahead is withdrawn. On again: from now on.",
    "misfire_grace": "A slot later than this counts as missed. Hours:minutes:seconds.",
    "catchup_window": "Missed slots older than this are never run.",
    "catchup_limit": "1 to 1000 runs at most to catch up.",
}


class PayloadField(forms.JSONField):
    """Text nested so deep that Python gives up is refused like any other that is no JSON."""

    def to_python(self, value: Any) -> Any:
        try:
            found = super().to_python(value)
            json.dumps(found)  # as the page does to show it again
        except RecursionError:
            raise ValidationError("This is nested too deep; flatten it.", code="invalid") from None
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            found = super().bound_data(data, initial)
            json.dumps(found)
        except RecursionError:
            return InvalidJSONInput(data)
        return found


class CronForm(_Form):
    class Meta:
        model = CronDefinition
        fields = "__all__"  # the admin's fieldsets choose
        field_classes: ClassVar = {"payload": PayloadField}
        help_texts = HELP
        labels: ClassVar = {"timezone": "Time zone", "dst": "When the clocks change", "every": "Or every"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Else what has changed, and so what the audit says, would be told by the browser.
        if "payload" in self.fields:
            self.fields["payload"].show_hidden_initial = False

    def clean_timezone(self) -> str:
        name: str = self.cleaned_data["timezone"]
        try:
            zone(name)
        except CronError as error:
            raise ValidationError(error.message) from error
        return name

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = super().clean() or {}
        if not self.errors and {"job_type", "payload", "queue", "priority", "max_attempts"} & set(
            self.changed_data
        ):
            self._check_job(found)
        return found

    def _check_job(self, found: dict[str, Any]) -> None:
        """What schedule() would refuse. An unknown type that was there before does not stand in the way of other
        edits."""
        new = NewJob(
            job_type=found["job_type"],
            payload=found["payload"],
            queue=found["queue"],
            priority=found["priority"],
            max_attempts=found["max_attempts"],
        )
        try:
            if "job_type" in self.changed_data or registry.get(new.job_type):
                prepare(new, Frame(timezone.now()), IdRun())
            else:
                encode(new.payload, limit=conf().payload_bytes)
        except InvalidJob as error:
            name = re.split(r"[.\[]", error.field)[0]  # the field may go on as a path into the payload
            self.add_error(
                name if name in self.fields else None, error.message if name == error.field else str(error)
            )

    def add_error(self, field: str | None, error: Any) -> None:
        """A field that is known to be wrong is not told so twice: the model checks the rule as a whole as well."""
        if field is None and hasattr(error, "error_dict"):
            # Without a field that could not be read, the rest of a rule is not to be judged.
            known = RULE if RULE & set(self.errors) else set(self.errors)
            left = {name: each for name, each in error.error_dict.items() if name not in known}
            if not left:
                return
            error = ValidationError(left)
        super().add_error(field, error)
