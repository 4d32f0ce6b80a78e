"""TODO runtime/records."""
