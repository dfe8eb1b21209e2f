"""The web processes. GUNICORN_CMD_ARGS overrides anything here."""

# ruff: noqa: N999 (gunicorn looks for this name)
from __future__ import annotations

import os

wsgi_app = "scheduler_project.wsgi"
bind = os.environ.get("WEB_BIND", "127.0.0.1:8000")
workers = int(os.environ.get("WEB_CONCURRENCY", "2"))
threads = 4
timeout = 30
graceful_timeout = 10
max_requests = 10_000
max_requests_jitter = 1_000
loglevel = "warning"
