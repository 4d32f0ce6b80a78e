"""TODO runtime/task/output."""
