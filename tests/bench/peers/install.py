"""Where the peers are installed, with the pinned versions: under `.data/peers/`, and only when asked for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scheduler_project.children import ROOT
from scheduler_project.embedded.place import make_folder
from tests.bench.peers.peer import Home, Peer, PeerFailed

HERE = Path(__file__).parent
FOLDER = ROOT / ".data" / "peers"
NODE_FOLDER = FOLDER / "node"
NODE_FILES = ("package.json", "package-lock.json")
OLDEST_NODE = (22, 18)
"""What graphile-worker and pg-boss need."""
_DONE = "installed"
"""The file in an environment that says what is in it."""


def requirements(peer: Peer) -> Path:
    return HERE / "requirements" / f"{peer.name}.txt"


def environment(peer: Peer) -> Path:
    """One for each version of Python: the one that runs this is what they get."""
    major, minor = sys.version_info[:2]
    return FOLDER / f"{peer.name}-{major}.{minor}"


def python(peer: Peer) -> Path:
    return environment(peer) / "bin" / "python"


def node() -> Path:
    """Ours, else the machine's."""
    shipped = sorted(NODE_FOLDER.glob("node_modules/node-*/bin/node"))
    found = shipped[0] if shipped else Path(shutil.which("node") or "")
    said = _say([found, "--version"]) if found.name else ""
    version = re.match(r"v(\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_NODE:
        oldest = ".".join(map(str, OLDEST_NODE))
        raise PeerFailed(f"Node {oldest} or newer is needed, and this machine has {said or 'none'}")
    return found


def redis_server() -> str:
    if found := shutil.which("redis-server"):
        return found
    raise PeerFailed("redis-server is needed for celery: apt-get install redis-server, or leave celery out")


def version(peer: Peer) -> str:
    """The pinned one."""
    if peer.home is Home.CHECKOUT:
        return "this checkout"
    if peer.home is Home.NODE:
        pinned: str = json.loads((HERE / "node" / "package.json").read_text())["dependencies"][peer.title]
        return pinned
    found = re.search(rf"^{re.escape(peer.title)}==(\S+)", requirements(peer).read_text(), re.MULTILINE)
    return found[1] if found else "unknown"


def is_installed(peer: Peer) -> bool:
    if peer.home is Home.CHECKOUT:
        return True
    folder = NODE_FOLDER if peer.home is Home.NODE else environment(peer)
    done = folder / _DONE
    return done.exists() and done.read_text() == _wanted(peer)


def install(peer: Peer) -> None:
    """From the registries that pip and npm are set up for."""
    make_folder(FOLDER)
    if peer.home is Home.NODE:
        _install_node()
        folder = NODE_FOLDER
    else:
        folder = environment(peer)
        _run([sys.executable, "-m", "venv", "--clear", folder])
        pip = [str(python(peer)), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        _run([*pip, "install", "-r", str(requirements(peer))])
    (folder / _DONE).write_text(_wanted(peer))


def _install_node() -> None:
    if shutil.which("npm") is None:
        raise PeerFailed("npm is needed to install the Node peers: apt-get install npm, or leave them out")
    NODE_FOLDER.mkdir(exist_ok=True)
    for name in NODE_FILES:
        shutil.copyfile(HERE / "node" / name, NODE_FOLDER / name)
    # Their scripts are not run: all that is needed is in the packages.
    _run(["npm", "--prefix", NODE_FOLDER, "ci", "--ignore-scripts", "--no-audit", "--no-fund"])


def _wanted(peer: Peer) -> str:
    file = HERE / "node" / "package-lock.json" if peer.home is Home.NODE else requirements(peer)
    return file.read_text()


def _run(command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=_clean())
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-1500:]
        raise PeerFailed(f"{' '.join(map(str, command))} failed:\n{said}")


def _say(command: Sequence[str | Path]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _clean() -> dict[str, str]:
    """Without what would lead Python or pip into another environment."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
