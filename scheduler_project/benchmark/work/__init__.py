"""The sibling app whose handlers the benchmark's workers run; no other process installs it."""
