"""This project beside other job schedulers, on one server, with the same work."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType

import psycopg

from jobs.errors import SchedulerError
from scheduler_project.children import STOPPING
from tests.bench.peers import install, server
from tests.bench.peers.catalogue import PEERS
from tests.bench.peers.machine import sentence
from tests.bench.peers.peer import Home, PeerFailed
from tests.bench.peers.session import Session
from tests.bench.peers.tables import tables
from tests.bench.peers.workloads import WORKLOADS

STOPPED = 130


def main() -> int:
    options = _arguments()
    for number in STOPPING:
        signal.signal(number, _stop)
    try:
        _require(options.peers, install_missing=options.install)
        return _compare(options)
    except (SchedulerError, psycopg.Error) as error:
        _say(f"peers: {str(error).strip()}")
        return 1
    except KeyboardInterrupt:
        _say("stopped")
        return STOPPED


def _compare(options: argparse.Namespace) -> int:
    session = Session(server.enter(), options.peers, options.workloads, options.jobs, options.repeat, _say)
    named = sentence(session.machine(), options.repeat)
    session.run()
    print(f"{named}\n")
    print("\n".join(tables(session.found, options.workloads, options.peers, options.jobs)))
    if session.changed:
        _say("peers: the code of this project changed between its runs; run it again while nobody edits it")
    if options.json:
        options.json.write_text(json.dumps(session.as_json(), indent=2) + "\n")
    return 1 if session.failed else 0


def _require(names: Sequence[str], *, install_missing: bool) -> None:
    """Everything that these peers need is there, before anything is measured."""
    peers = [PEERS[name] for name in names]
    missing = [peer for peer in peers if not install.is_installed(peer)]
    if missing and not install_missing:
        raise PeerFailed(
            f"not installed: {', '.join(peer.name for peer in missing)}. Add --install to have them put into "
            f"{install.FOLDER} from the package registries, or choose others with --peers"
        )
    for peer in missing:
        if not install.is_installed(peer):  # the Node peers come together
            _say(f"installing {peer.title} {install.version(peer)}")
            install.install(peer)
    if any(peer.on_redis for peer in peers):
        install.redis_server()
    if any(peer.home is Home.NODE for peer in peers):
        install.node()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    for name, known in (("--peers", PEERS), ("--workloads", WORKLOADS)):
        parser.add_argument(
            name, type=_names(known), default=list(known), metavar="A,B", help=f"default: {','.join(known)}"
        )
    parser.add_argument("--jobs", type=int, default=20_000, help="of burst and schedule (default: 20,000)")
    parser.add_argument("--repeat", type=int, default=3, help="rounds; figures are medians (default: 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all of it there too")
    parser.add_argument("--install", action="store_true", help="install peers that are missing")
    options = parser.parse_args()
    if options.jobs < 100 or options.repeat < 1:
        parser.error("at least 100 jobs and one round")
    if options.json and not options.json.parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.parent}")
    return options


def _names(known: Iterable[str]) -> Callable[[str], list[str]]:
    """A comma list of some of these, in their order."""

    def names(text: str) -> list[str]:
        wanted = {name.strip() for name in text.split(",")}
        if unknown := wanted - set(known):
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: choose from {','.join(known)}")
        return [name for name in known if name in wanted]

    return names


def _stop(number: int, frame: FrameType | None) -> None:
    """Once: what is cleaned up then is not to be interrupted."""
    for each in STOPPING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
