"""The app, so that its command is found; no models."""

from __future__ import annotations

from django.apps import AppConfig


class BenchmarkConfig(AppConfig):
    name = "scheduler_project.benchmark"
