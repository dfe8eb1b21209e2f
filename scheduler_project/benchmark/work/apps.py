"""The app; it has its process note its claims when it is asked to."""

from __future__ import annotations

import os
from pathlib import Path

from django.apps import AppConfig


class WorkConfig(AppConfig):
    name = "scheduler_project.benchmark.work"
    label = "benchmark_work"

    def ready(self) -> None:
        from scheduler_project.benchmark import claims  # needs the models

        if file := os.environ.get(claims.VARIABLE):
            claims.note_claims(Path(file))
