"""The verbs: one pass a file, listed in order in `pipeline`."""
