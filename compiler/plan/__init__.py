"""Prints plans at every stage."""
