"""Rows, and the types that describe records."""
