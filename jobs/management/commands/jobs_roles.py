"""Make the groups of the console's roles: viewer, support, operator, lead, auditor. Run again it adds what is missing."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from jobs import roles
from jobs.management import arguments
from jobs.management.arguments import names
from jobs.models import Tenant, TenantMember


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", help="put this user into the group of --role")
        parser.add_argument("--role", choices=sorted(roles.ROLES), help="the role that --user gets")
        parser.add_argument(
            "--tenants",
            type=names,
            help="slugs, comma-separated: the only tenants that --user sees from now on",
        )
        parser.add_argument(
            "--database", type=arguments.database, default="default", help="alias of the database to work on"
        )

    def handle(
        self,
        *args: Any,
        user: str | None,
        role: str | None,
        tenants: tuple[str, ...] | None,
        database: str,
        **options: Any,
    ) -> None:
        if (role or tenants) and not user:
            raise CommandError("--role and --tenants are about a user: name one with --user")
        if user and not (role or tenants):
            raise CommandError("--user needs --role, --tenants or both")
        with transaction.atomic(database):
            for each, given in roles.make(database).items():
                told = f"given {', '.join(given)}" if given else "nothing was missing"
                self.stdout.write(f"{roles.name_of(each)}: {told}")
            if user:
                self._join(user, role, tenants, database)

    def _join(self, name: str, role: str | None, tenants: tuple[str, ...] | None, using: str) -> None:
        model = get_user_model()
        try:
            user: Any = model._default_manager.db_manager(using).get_by_natural_key(name)
        except model.DoesNotExist:
            raise CommandError(f"there is no user {name!r}") from None
        if role:
            user.groups.add(Group.objects.using(using).get(name=roles.name_of(role)))
            self.stdout.write(f"{name} is in {roles.name_of(role)}")
        if tenants:
            found = {tenant.slug: tenant for tenant in Tenant.objects.using(using).filter(slug__in=tenants)}
            if missing := sorted(set(tenants) - set(found)):
                raise CommandError(f"there is no tenant {', '.join(missing)}")
            TenantMember.objects.using(using).filter(user=user).exclude(tenant__in=found.values()).delete()
            for tenant in found.values():
                TenantMember.objects.using(using).get_or_create(user=user, tenant=tenant)
            self.stdout.write(f"{name} sees {', '.join(sorted(found))}")
        if not user.is_staff:
            self.stderr.write(f"{name} is not marked as staff, so the admin does not let them in")
