"""The app: finds the handlers of sibling apps and registers the checks."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Job scheduler"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from jobs import checks  # noqa: F401  # registers the system checks

        try:
            autodiscover_modules("tasks")
        except SystemExit as error:
            raise ImportError(f"a tasks module called exit({error.code!r}) while it was imported") from error
