"""`python -m tests.bench.peers.adapters PEER prepare|schedule|work OPTIONS`: one verb of one peer.

`prepare` makes its tables. `schedule` reads an order from standard input and prints how long that took. `work` runs a
worker process until it is told to stop.
"""

from __future__ import annotations

import importlib
import json
import sys

from tests.bench.peers.adapters.order import Order


def main() -> None:
    peer, verb, options = sys.argv[1:]
    adapter = importlib.import_module(f"tests.bench.peers.adapters.{peer}")
    if verb == "schedule":
        order = Order(**json.load(sys.stdin))
        adapter.schedule(order)
        print(json.dumps(order.result()))
    elif verb == "prepare":
        adapter.prepare()
    else:
        adapter.work(**json.loads(options))


if __name__ == "__main__":
    main()
