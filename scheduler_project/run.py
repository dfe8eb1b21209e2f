"""`make run`: the whole scheduler with its web console on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import Error, connections

from jobs.conf import conf
from jobs.errors import NotConfigured
from scheduler_project import embedded
from scheduler_project.children import Children, stop_signals

ROOT = Path(__file__).resolve().parents[1]
PORTS = range(8000, 8020)
ADMIN = "admin"


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
    try:
        django.setup()
        with stop_signals() as stop:
            ours = settings.OWN_DATABASE and not embedded.is_running(embedded.CHECKOUT)
            children = Children()
            try:
                embedded.ensure()
                login = prepare()
                address = start(children)
                say(f"console  http://{address}/\n{login}\nCtrl-C stops everything")
                while not (failed := children.ended()) and not stop.wait(0.2):
                    pass
                say(f"run: {failed}, so everything stops" if failed else "stopping")
            finally:
                children.stop(patience=conf().grace.total_seconds() + 5)
                if ours:
                    embedded.stop(embedded.CHECKOUT)
    except (NotConfigured, CommandError, Error) as error:
        say(f"run: {str(error).strip()}")
        return 1
    return 1 if failed else 0


def prepare() -> str:
    """Bring the database up to date; how to log in."""
    call_command("migrate", interactive=False, verbosity=0)
    if not settings.DEBUG:
        call_command("collectstatic", interactive=False, verbosity=0)
    login = ensure_admin()
    connections.close_all()
    return login


def ensure_admin() -> str:
    from django.contrib.auth import get_user_model

    users = get_user_model()._default_manager
    if users.filter(is_superuser=True).exists():
        return f"log in   as before; `manage.py changepassword {ADMIN}` sets a new password"
    password = secrets.token_urlsafe(12)
    users.create_superuser(ADMIN, password=password)
    return f"log in   {ADMIN} / {password}   (shown this once)"


def start(children: Children) -> str:
    manage = str(ROOT / "manage.py")
    address = os.environ.get("WEB_BIND") or free_address()
    children.start("the dispatcher", [manage, "rundispatcher"])
    children.start("the worker", [manage, "runworker"])
    config = str(Path(__file__).with_name("gunicorn.conf.py"))
    web = ["-m", "gunicorn", "--chdir", str(ROOT), "-c", config]
    children.start("the web console", web, {"WEB_BIND": address})
    return address


def free_address() -> str:
    for port in PORTS:
        with socket.socket() as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            return f"127.0.0.1:{port}"
    raise NotConfigured(f"no port from {PORTS[0]} to {PORTS[-1]} is free: set WEB_BIND to an address")


def say(message: str) -> None:
    sys.stderr.write(f"{message}\n")


if __name__ == "__main__":
    sys.exit(main())
