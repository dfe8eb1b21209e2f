"""Deploys: what was marked as deployed, and what began or ended with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from jobs.console import show


@dataclass(frozen=True)
class Deploy:
    at: datetime
    name: str

    @property
    def told(self) -> str:
        """In the operator's zone."""
        return f"{timezone.localtime(self.at):%H:%M} {show.visible(self.name)}"


def before(deploys: Sequence[Deploy], first: datetime) -> Deploy | None:
    """The last one before something began."""
    return next((each for each in reversed(deploys) if each.at <= first), None)


def after(deploys: Sequence[Deploy], last: datetime) -> Deploy | None:
    """The first one after something ended."""
    return next((each for each in deploys if each.at > last), None)
