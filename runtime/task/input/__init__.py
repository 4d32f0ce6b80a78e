"""TODO runtime/task/input."""
