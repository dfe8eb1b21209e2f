"""`python -m scheduler_project.embedded start|stop|uri`: the server of this checkout."""

from __future__ import annotations

import argparse
import sys

from jobs.errors import NotConfigured
from scheduler_project import embedded


def main() -> int:
    parser = argparse.ArgumentParser(prog="scheduler_project.embedded", description=__doc__)
    parser.add_argument("verb", choices=["start", "stop", "uri"])
    verb = parser.parse_args().verb
    try:
        if verb == "stop":
            stopped = embedded.stop(embedded.CHECKOUT)
            sys.stdout.write(
                "PostgreSQL stopped\n" if stopped else "no PostgreSQL of this checkout is running\n"
            )
        else:
            address = embedded.start(embedded.CHECKOUT) if verb == "start" else embedded.uri()
            sys.stdout.write(f"{address}\n")
    except NotConfigured as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
