"""Operators: what they are (specs) and how they run."""
