"""`Triage`: what people have said of one kind of error, so that nobody looks at it twice."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class TriageState(models.TextChoices):
    KNOWN = "known", "known: somebody takes care of it"
    IGNORED = "ignored", "ignored: it does not matter"
    MENDED = "mended", "mended: should it fail again, it is told as back"


class Triage(models.Model):
    """By the fingerprint that failed jobs bear. No row: it is new. What was said before is in the audit."""

    fingerprint = models.CharField(max_length=16, primary_key=True)
    state = models.CharField(max_length=7, choices=TriageState.choices)
    until = models.DateTimeField(null=True)
    """From then on it is new again; null: it stays so."""
    owner = models.CharField(max_length=150, default="", blank=True)
    """Who takes care of it."""
    note = models.CharField(max_length=500, default="", blank=True)
    by = models.CharField(max_length=150, default="", blank=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.fingerprint}: {self.state}"
