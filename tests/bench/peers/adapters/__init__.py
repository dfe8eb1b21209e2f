"""One file per Python peer, run by the Python of that peer's environment: nothing of the harness is imported here."""
