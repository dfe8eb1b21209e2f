"""The formal model of a job's life (`scheduler.pml`), checked exhaustively by Spin."""
