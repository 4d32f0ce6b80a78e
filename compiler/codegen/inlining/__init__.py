"""Bodies of the user's functions in place of their calls: the parts of the rule inline_functions."""
