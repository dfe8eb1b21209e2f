"""The settings of the tests: those of the project, on a PostgreSQL that may forget everything.

Its address is known here and its start is left to `conftest.py`. With DATABASE_URL that server is used, by the
subprocesses that tests start above all.
"""

from __future__ import annotations

import os

from tests import server

os.environ.setdefault("DATABASE_URL", server.uri())
os.environ.setdefault(
    "SECRET_KEY", "only for tests, never anywhere else: 0123456789 abcdefghijklmnopqrstuvwxyz"
)
os.environ.setdefault("ALLOWED_HOSTS", "testserver,localhost,127.0.0.1")
os.environ.setdefault("SECURE_SSL_REDIRECT", "0")
os.environ.setdefault("SCHEDULER_APPS", "tests.handlers")

from scheduler_project.settings import *  # noqa: F403
from scheduler_project.settings import DATABASES, MIDDLEWARE, STORAGES

DATABASES["default"]["TEST"] = {"NAME": os.environ.get(server.DATABASE_NAME, "test_punctual")}
# A flush that waits for a forgotten transaction fails instead of hanging.
DATABASES["default"]["OPTIONS"].setdefault("options", "-c lock_timeout=60s")

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_AUTOREFRESH = True

MIDDLEWARE = ["tests.policy.ContentSecurityPolicy", *MIDDLEWARE]
