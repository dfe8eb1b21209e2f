"""`python -m tests.browser.pictures FOLDER`: a picture of every page of the console, with data, empty and too slow, on a
desk and on a phone, light and dark. `--docs` also makes those of docs/images of them (with Pillow)."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
SHOWN = {
    "overview": "overview-desktop-light",
    "why": "job-queued-desktop-light",
    "search": "search-desktop-light",
    "errors": "errors-desktop-light",
    "forecast": "forecast-desktop-dark",
    "queues": "queues-desktop-light",
    "tenant": "tenant-desktop-light",
    "cron": "preview-desktop-light",
    "operation": "operation-desktop-light",
    "health": "health-desktop-dark",
    "phone": "errors-phone-dark",
    "phone-overview": "overview-phone-light",
}
"""What docs/console.md shows."""
HEIGHT, COLOURS, MOST = 1000, 192, 120_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.pictures", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    tests = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist",
        "worksteal",
        "-m",
        "browser",
        *(f"tests/browser/test_{name}.py" for name in ("pages", "asking", "safety")),
    ]
    failed = subprocess.run(tests, cwd=ROOT, env={**os.environ, "SCREENSHOTS": str(folder)}).returncode
    if asked.docs and not failed:
        for name, source in SHOWN.items():
            make_small(folder / f"{source}.png", IMAGES / f"console-{name}.png")
    return failed


def make_small(source: Path, target: Path) -> None:
    """The top of the page in few colours, and in fewer while it is too large."""
    from PIL import Image

    with Image.open(source) as picture:
        top = picture.convert("RGB").crop((0, 0, picture.width, min(picture.height, HEIGHT)))
    for colours in (COLOURS, COLOURS // 2, COLOURS // 4):
        top.quantize(colours, dither=Image.Dither.NONE).save(target, optimize=True)
        if target.stat().st_size <= MOST:
            return
    raise SystemExit(f"{target} has {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    sys.exit(main())
