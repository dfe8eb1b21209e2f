"""The app that brings the loops and their commands; no models."""

from __future__ import annotations

from django.apps import AppConfig


class DispatchConfig(AppConfig):
    name = "dispatch"
