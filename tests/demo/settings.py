"""The settings of the demo: those of the project, with mail that goes to files and a log that does not disturb.

What is particular to one run comes in by the environment, see `environment.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import django

from scheduler_project.settings import *  # noqa: F403

DEMO_FOLDER = Path(os.environ["DEMO_FOLDER"])

_BACKEND, _FOLDER = "django.core.mail.backends.filebased.EmailBackend", str(DEMO_FOLDER / "mail")
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": _BACKEND, "OPTIONS": {"file_path": _FOLDER}}}
else:
    EMAIL_BACKEND, EMAIL_FILE_PATH = _BACKEND, _FOLDER
DEFAULT_FROM_EMAIL = "reminders@demo.example"
