"""`Rated`: how often jobs of an owner may start. A token bucket: `burst` at once, then `rate` each second, minute or
hour, over the whole fleet."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from jobs.conf import MOST

NONE_MAY_RUN = "0: none may run."


class RatePer(models.TextChoices):
    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"


SECONDS = {RatePer.SECOND: 1, RatePer.MINUTE: 60, RatePer.HOUR: 3600}


class Rated(models.Model):
    rate = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(MOST)],
        help_text=f"Most starts a second, minute or hour; {NONE_MAY_RUN[:-1]}; empty: unlimited.",
    )
    rate_per = models.CharField(
        max_length=6, choices=RatePer.choices, default=RatePer.SECOND, db_default=RatePer.SECOND
    )
    burst = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST)],
        help_text="Starts that may be saved up while idle; empty: those of one second, at least one.",
    )

    class Meta:
        abstract = True

    def clean(self) -> None:
        super().clean()
        if self.burst is not None and self.rate is None:
            raise ValidationError({"burst": f"burst is {self.burst} and there is no rate: give a rate too"})

    @property
    def per_second(self) -> float | None:
        """None: unlimited."""
        return None if self.rate is None else self.rate / SECONDS[RatePer(self.rate_per)]


def rate_checks(table: str) -> list[Any]:
    """The database's part of the rules, for a table with a rate."""
    return [
        models.CheckConstraint(condition=Q(rate__gte=0, rate__lte=MOST), name=f"{table}_rate"),
        models.CheckConstraint(condition=Q(rate_per__in=RatePer.values), name=f"{table}_rate_per"),
        models.CheckConstraint(
            condition=Q(burst__isnull=True) | Q(burst__gte=1, burst__lte=MOST, rate__isnull=False),
            name=f"{table}_burst",
        ),
    ]
