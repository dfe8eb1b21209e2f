"""`Tenant`: whose job it is, and how much of the fleet it may have at once."""

from __future__ import annotations

from typing import ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jobs import moments
from jobs.conf import MOST
from jobs.models.rated import NONE_MAY_RUN, Rated, rate_checks
from jobs.slugs import slug_of

MOST_WEIGHT = 1000


class Tenant(Rated):
    """Created on first use. No foreign key of the big tables points here: they stay free of row locks."""

    slug = models.CharField("name", max_length=100, unique=True, help_text="As schedule(tenant=…) gives it.")
    weight = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_WEIGHT)],
        help_text="Share of the claims while others wait too.",
    )
    max_running = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(MOST)],
        help_text="Most jobs at once; 0: none may run; empty: unlimited.",
    )
    temporary_max_running = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(MOST)],
        help_text=f"Instead of max running until the time below; {NONE_MAY_RUN[:-1]}; empty: unlimited.",
    )
    temporary_until = models.DateTimeField(
        null=True, blank=True, help_text="When the temporary limit ends; empty: there is none."
    )
    noisy_exempt = models.BooleanField(
        "may fill the workers",
        default=False,
        db_default=False,
        help_text="It may hold more than the noisy share of a worker's threads while others wait.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    retired_at = models.DateTimeField(null=True, editable=False)
    """When it was deleted: the row stays for a day, and is a tenant again for whoever uses the slug meanwhile."""

    class Meta:
        ordering: ClassVar[list[str]] = ["slug"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(weight__gte=1, weight__lte=MOST_WEIGHT), name="jobs_tenant_weight"
            ),
            models.CheckConstraint(
                condition=Q(max_running__gte=0, max_running__lte=MOST), name="jobs_tenant_max_running"
            ),
            models.CheckConstraint(
                condition=Q(temporary_max_running__isnull=True)
                | Q(
                    temporary_max_running__gte=0,
                    temporary_max_running__lte=MOST,
                    temporary_until__isnull=False,
                ),
                name="jobs_tenant_temporary",
            ),
            *rate_checks("jobs_tenant"),
        ]

    def __str__(self) -> str:
        return self.slug

    def clean(self) -> None:
        super().clean()
        try:
            self.slug = slug_of(self.slug)
        except ValueError as error:
            raise ValidationError({"slug": str(error)}) from None
        if self.temporary_until is not None:
            try:
                moments.stored(self.temporary_until)
            except ValueError as error:
                raise ValidationError({"temporary_until": str(error)}) from None
        if self.temporary_max_running is not None and self.temporary_until is None:
            raise ValidationError(
                {
                    "temporary_until": "a temporary limit needs the time when it ends: give it, or clear the limit"
                }
            )
