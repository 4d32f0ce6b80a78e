"""TODO runtime/measurements."""
