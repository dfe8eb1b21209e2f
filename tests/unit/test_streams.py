"""Standard streams that whoever starts a worker has closed."""

from __future__ import annotations

import subprocess
import sys

CLOSED = """
import os
for number in range(3):
    os.close(number)
from dispatch.ready import open_streams
open_streams()
nothing = os.stat(os.devnull).st_rdev
os._exit(0 if all(os.fstat(n).st_rdev == nothing and os.get_inheritable(n) for n in range(3)) else 1)
"""


def test_what_was_closed_is_open_on_nothing_and_no_file_gets_its_number() -> None:
    """What a body prints would be written into it."""
    assert subprocess.run([sys.executable, "-c", CLOSED], check=False).returncode == 0
