"""`Tenant`: whose job it is, and how much of the fleet it may have at once."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Tenant(models.Model):
    """Created on first use. No foreign key in the database points here: the big tables stay free of row locks."""

    slug = models.CharField(max_length=100, unique=True)
    weight = models.PositiveSmallIntegerField(
        default=1, validators=[MinValueValidator(1)], help_text="Share of the claims while others wait too."
    )
    max_running = models.PositiveIntegerField(
        null=True, blank=True, help_text="Most jobs at once; 0: none may run; empty: unlimited."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering: ClassVar[list[str]] = ["slug"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=Q(weight__gte=1), name="jobs_tenant_weight"),
            models.CheckConstraint(condition=Q(max_running__gte=0), name="jobs_tenant_max_running"),
        ]

    def __str__(self) -> str:
        return self.slug
