"""Access to keyed state without its objects: the parts of the rule inline_state."""
