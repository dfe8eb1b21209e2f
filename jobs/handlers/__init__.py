"""What the built-in job types do, as plain functions; `jobs/tasks.py` registers them."""

from __future__ import annotations
