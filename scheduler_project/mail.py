"""Mail settings from EMAIL_URL, in the form the installed Django wants."""

from __future__ import annotations

from typing import Any

import django
import environ

from jobs.errors import NotConfigured

TIMEOUT = 30
"""Seconds for a mail server to answer; Django's default waits for ever."""


def mail_settings(url: str) -> dict[str, Any]:
    """Settings for `smtp+tls://user:password@host:587`, `consolemail://`, `filemail:////var/outbox` and the
    like.
    NotConfigured for an address of another kind."""
    try:
        found: dict[str, Any] = environ.Env.email_url_config(url)
    except Exception as error:  # a KeyError for an unknown scheme, a ValueError for a bad port
        raise NotConfigured("EMAIL_URL must be an address like smtp+tls://user:password@host:587") from error
    if django.VERSION < (6, 1):
        return {**found, "EMAIL_TIMEOUT": TIMEOUT}
    backend = found["EMAIL_BACKEND"]
    options: dict[str, Any] = {}
    if backend.endswith("smtp.EmailBackend"):
        options = {
            "host": found["EMAIL_HOST"],
            "port": found["EMAIL_PORT"] or 25,
            "username": found["EMAIL_HOST_USER"] or "",
            "password": found["EMAIL_HOST_PASSWORD"] or "",
            "use_tls": found.get("EMAIL_USE_TLS", False),
            "use_ssl": found.get("EMAIL_USE_SSL", False),
            "timeout": TIMEOUT,
        }
    elif backend.endswith("filebased.EmailBackend"):
        options = {"file_path": found["EMAIL_FILE_PATH"]}
    return {"MAILERS": {"default": {"BACKEND": backend, "OPTIONS": options}}}
