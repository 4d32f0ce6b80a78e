"""TODO runtime/state/keys."""
