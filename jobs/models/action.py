"""`OperatorAction`: what an operator did, to what, and why. Append-only."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class OperatorAction(models.Model):
    """The audit record of one command, never of one job: a bulk command writes one row."""

    verb = models.CharField(max_length=20)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    actor_name = models.CharField(max_length=150)
    at = models.DateTimeField(db_default=Now())
    target = models.JSONField(default=dict)
    reason = models.CharField(max_length=500, default="", blank=True)
    matched = models.IntegerField(default=0)
    changed = models.IntegerField(default=0)
    skipped = models.JSONField(default=dict)

    class Meta:
        default_permissions = ("view",)
        ordering: ClassVar[list[str]] = ["-id"]

    def __str__(self) -> str:
        return f"{self.verb} by {self.actor_name}"
