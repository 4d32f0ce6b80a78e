"""TODO runtime/state/keyed."""
