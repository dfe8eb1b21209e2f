"""docs/faults.md names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "faults.md").read_text()
TESTS = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))


def test_every_file_it_names_exists() -> None:
    named = set(re.findall(r"(?:tests|jobs|dispatch)/[\w/]+\.\w+", PAGE))
    assert len(named) > 50
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_test_it_names_exists() -> None:
    named = set(re.findall(r"\btest_[a-z0-9]\w+\b(?![*.])", PAGE))
    assert len(named) > 100
    missing = [
        name for name in named if not re.search(rf"def test_(\w+_)?{name.removeprefix('test_')}", TESTS)
    ]
    assert sorted(missing) == []


def test_every_case_stands_once_with_an_answer() -> None:
    rows = re.findall(r"^\| ([A-Z]{2}-\d\d) \| [^|]+ \| (.+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == len({case for case, _ in rows}) == 125
