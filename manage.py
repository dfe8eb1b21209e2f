#!/usr/bin/env python
"""Django's command line.

Without DATABASE_URL, commands use this checkout's own PostgreSQL. It is started here, before the command, for every
command but those below, which do their work without a database.
"""

from __future__ import annotations

import os
import sys

NEED_NO_DATABASE = {
    "check",
    "collectstatic",
    "compilemessages",
    "diffsettings",
    "findstatic",
    "help",
    "makemessages",
    "makemigrations",
    "startapp",
    "startproject",
    "version",
}


def needs_database(arguments: list[str]) -> bool:
    if not arguments or {"--help", "-h", "--version"} & set(arguments):
        return False
    return arguments[0] not in NEED_NO_DATABASE or any(word.startswith("--database") for word in arguments)


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
    from django.core.management import execute_from_command_line

    from jobs.errors import NotConfigured
    from scheduler_project import embedded

    try:
        if needs_database(sys.argv[1:]):
            embedded.ensure()
        execute_from_command_line(sys.argv)
    except NotConfigured as error:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {error}")


if __name__ == "__main__":
    main()
