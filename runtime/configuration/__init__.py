"""Settings as keys and values: options, their types, their text."""
