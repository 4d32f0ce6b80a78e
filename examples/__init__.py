"""Programs to learn from; run them from the repository's root."""
