"""The built-in job types."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobs.context import Context
from jobs.handlers import command, email, http, shell
from jobs.registry import job_type


@job_type("django.command")
def django_command(
    context: Context, name: str, args: list[Any] | None = None, options: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Run a management command named in SCHEDULER['django_commands']."""
    return command.run(name, args, options)


@job_type("shell.run")
def shell_run(
    context: Context,
    command: str,
    stdin: str = "",
    environment: dict[str, str] | None = None,
    user: str = "",
) -> dict[str, Any]:
    """Run a command line named in SCHEDULER['shell_commands']. `user` is what a crontab said; workers run as one user."""
    return shell.run(command, stdin=stdin, environment=environment, heartbeat=context.heartbeat)


# Longer than any request may take, so that the request's own timeout is the one that is reported.
@job_type("http.request", timeout=timedelta(seconds=http.MAX_TIMEOUT + 15))
def http_request(
    context: Context,
    url: str,
    method: str = "POST",
    headers: dict[str, str] | None = None,
    json: Any = None,
    body: str | None = None,
    timeout: float = 30,
) -> dict[str, Any]:
    """Call a URL, say a webhook."""
    return http.send(
        url=url,
        idempotency_key=context.idempotency_key,
        method=method,
        headers=headers,
        json=json,
        body=body,
        timeout=timeout,
        heartbeat=context.heartbeat,
    )


@job_type("email.send", timeout=timedelta(minutes=5))
def email_send(
    context: Context,
    to: str | list[str],
    subject: str,
    body: str = "",
    html: str | None = None,
    from_email: str | None = None,
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Send one email."""
    return email.send(
        idempotency_key=context.idempotency_key,
        to=to,
        subject=subject,
        body=body,
        html=html,
        from_email=from_email,
        headers=headers,
    )
