"""State as functions see it: descriptors, states, stores, and time to live."""
