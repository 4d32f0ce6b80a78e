"""TODO runtime/program."""
