"""`make model`: the model holds, and each guard that is left out is missed."""

from __future__ import annotations

import sys
import time

from jobs.errors import NotConfigured
from tests.model.checking import BROKEN, PROPER, Search, check


def main() -> int:
    wrong = 0
    try:
        for search in (*PROPER, *BROKEN):
            wrong += not _tell(search)
    except NotConfigured as error:
        sys.stderr.write(f"model: {error}\n")
        return 1
    return 1 if wrong else 0


def _tell(search: Search) -> bool:
    begun = time.monotonic()
    found = check(search)
    if search.broken:
        good, says = found.errors > 0, f"caught: {found.wrong}" if found.errors else "NOT CAUGHT"
    else:
        good = not found.errors and found.complete
        says = "holds" if good else f"WRONG: {found.wrong or 'the search was not completed'}"
    print(
        f"{search.name:<48} {found.states:>10,} states {time.monotonic() - begun:5.1f} s  {says}", flush=True
    )
    return good


if __name__ == "__main__":
    sys.exit(main())
