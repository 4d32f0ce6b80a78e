"""Keys: Java's hash codes, key groups, and when two keys are equal."""
