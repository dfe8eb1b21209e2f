"""`OperatorAction`: what an operator did or tried, to what, and why. Append-only."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class ActionResult(models.TextChoices):
    DONE = "done"
    DENIED = "denied", "denied: a permission was missing"
    FAILED = "failed", "failed: nothing was changed"


class OperatorAction(models.Model):
    """The audit record of one command, never of one job: a bulk command writes one row. The database itself refuses to
    change a row, and to delete one that is younger than a year (schema/audit_trigger.sql)."""

    verb = models.CharField(max_length=40)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.DO_NOTHING, null=True, related_name="+", db_constraint=False
    )
    """Who, as long as the account exists; `actor_name` stays."""
    actor_name = models.CharField(max_length=150)
    at = models.DateTimeField(db_default=Now())
    via = models.CharField(max_length=40, default="code", blank=True)
    """console, command or code; for a command with the name of the system's user."""
    address = models.GenericIPAddressField(null=True)
    """Where the request came from, as the web server says."""
    target = models.JSONField(default=dict)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    """What the fields were that changed, and what they are now; without payloads."""
    tenant_id = models.BigIntegerField(null=True)
    """When it was about one tenant's things."""
    operation_id = models.BigIntegerField(null=True)
    reason = models.CharField(max_length=500, default="", blank=True)
    result = models.CharField(max_length=6, choices=ActionResult.choices, default=ActionResult.DONE)
    matched = models.IntegerField(default=0)
    changed = models.IntegerField(default=0)
    requested = models.IntegerField(default=0)
    """Running jobs that were asked to stop."""
    skipped = models.JSONField(default=dict)

    class Meta:
        default_permissions = ("view",)
        ordering: ClassVar[list[str]] = ["-id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["actor_name", "id"], name="jobs_action_actor"),
            models.Index(fields=["verb", "id"], name="jobs_action_verb"),
            models.Index(fields=["at"], name="jobs_action_at"),
        ]

    def __str__(self) -> str:
        return f"{self.verb} by {self.actor_name}"
