"""`python -m tests.bench.peers`: this project beside other job schedulers, on one server, with the same work."""
