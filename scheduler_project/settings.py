"""Django's settings from the environment: the README has the table of variables.

Without DATABASE_URL this is a development checkout: its own PostgreSQL (`scheduler_project.embedded`; importing
settings only computes the address), DEBUG on, a key of its own. With it nothing is assumed: the key and the hosts
must be given and everything goes over TLS.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from scheduler_project import embedded, env
from scheduler_project.mail import mail_settings

BASE_DIR = Path(__file__).resolve().parents[1]
OWN_DATABASE = not os.environ.get("DATABASE_URL", "").strip()

DEBUG = env.flag("DEBUG", default=OWN_DATABASE)
_relaxed = DEBUG or OWN_DATABASE
SECRET_KEY = env.text("SECRET_KEY", env.secret_key(BASE_DIR / ".data" / "secret_key") if _relaxed else None)
ALLOWED_HOSTS = env.names("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]" if _relaxed else None)
CSRF_TRUSTED_ORIGINS = env.names("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "jobs",
    "dispatch",
    "scheduler_project.benchmark",
    *env.names(env.APPS),
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "scheduler_project.urls"
WSGI_APPLICATION = "scheduler_project.wsgi.application"
ASGI_APPLICATION = "scheduler_project.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]


# A host that vanished, or a firewall that forgot the connection, is noticed within half a minute instead of hours.
_SILENCE = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def _database(name: str, default: str | None = None) -> dict[str, Any]:
    found = env.database(name, default)
    found.setdefault("CONN_MAX_AGE", 60)
    found.setdefault("CONN_HEALTH_CHECKS", True)  # the web processes outlive a restart of the database
    found["OPTIONS"].setdefault("application_name", "punctual")
    found["OPTIONS"].setdefault("connect_timeout", 10)
    for name, value in _SILENCE.items():
        found["OPTIONS"].setdefault(name, value)
    return found


DATABASES = {"default": _database("DATABASE_URL", embedded.uri())}
if os.environ.get("DIRECT_DATABASE_URL", "").strip():
    # For what a transaction pooler breaks: DDL and LISTEN. Everything else then goes through the pooler.
    DATABASES["direct"] = _database("DIRECT_DATABASE_URL") | {"TEST": {"MIRROR": "default"}}
    DATABASES["default"].setdefault("DISABLE_SERVER_SIDE_CURSORS", True)
else:
    DATABASES["default"]["OPTIONS"].setdefault(
        "prepare_threshold", 5
    )  # a session is ours: schedule() is prepared
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
LANGUAGE_CODE = "en"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

STATIC_URL = "static/"
STATIC_ROOT = Path(env.text("STATIC_ROOT", str(BASE_DIR / ".data" / "static")))
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = DEBUG

_tls = not _relaxed
SECURE_SSL_REDIRECT = env.flag("SECURE_SSL_REDIRECT", default=_tls)
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]  # load balancers ask inside the network, without TLS
SECURE_HSTS_SECONDS = env.whole("SECURE_HSTS_SECONDS", 3600 if _tls else 0)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT
if env.flag("BEHIND_TLS_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# To speak for subdomains and to enter browsers' lists is for the owner of the domain, not for one application.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

globals().update(
    mail_settings(env.text("EMAIL_URL", "consolemail://" if _relaxed else "smtp://localhost:25"))
)
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "webmaster@localhost")

_level = env.one_of("LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR"), "INFO")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "scheduler_project.logs.LineFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "jobs": {"level": _level},
        "dispatch": {"level": _level},
        "django": {"handlers": [], "level": "INFO"},
    },
}

SCHEDULER_METRICS_TOKEN = env.text("METRICS_TOKEN", "")
SCHEDULER = env.scheduler()
