"""`TenantMember`: whose tenants a user of the console may see. `SavedView`: a search that is kept under a name.
`Preference`: how its pages are to be."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jobs.models.tenant import Tenant


class TenantMember(models.Model):
    """One tenant that one user sees. Who has the permission `jobs.every_tenant` needs none; who has neither sees no
    tenant at all."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["user", "tenant"], name="jobs_tenantmember_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user} of {self.tenant}"


class SavedView(models.Model):
    """A line of `jobs.search` under a name: its owner's, or everybody's."""

    name = models.CharField(max_length=60)
    query = models.CharField(max_length=500)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        default_permissions = ()
        permissions = (("share_view", "Can share saved views with everybody"),)
        ordering: ClassVar[list[str]] = ["name", "id"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["owner", "name"], name="jobs_savedview_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["name"], condition=Q(shared=True), name="jobs_savedview_shared"),
        ]

    def __str__(self) -> str:
        return self.name


class Preference(models.Model):
    """How one user likes the pages of the console; what is empty is as usual."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="+")
    zone = models.CharField(max_length=64, default="", blank=True)
    refresh = models.CharField(max_length=8, default="", blank=True)
    density = models.CharField(max_length=11, default="", blank=True)
    keys = models.CharField(max_length=3, default="", blank=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"preferences of {self.user_id}"
