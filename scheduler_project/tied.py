"""`python -m scheduler_project.tied PARENT program …` becomes that Python program, which is asked to stop when PARENT
is gone.

So a demo or a benchmark that is killed, and can clean up nothing, leaves no process either (Linux).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, program = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before the call
        sys.exit(1)
    os.execv(sys.executable, [sys.executable, *program])  # noqa: S606  # our own program


if __name__ == "__main__":
    main()
