"""`python -m tests.storm`: a bounded fault storm against a real cluster, judged from a run ledger of its own.

As an app of the cluster's processes it brings their handlers (`tasks.py`)."""
