"""Printers of every stage of a plan."""
