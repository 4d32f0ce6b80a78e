"""What a program sees of a job that was started: its id, its status, its result."""
