"""The sibling app whose handler this project's workers run."""

from __future__ import annotations

RECORD = "peers.record"
