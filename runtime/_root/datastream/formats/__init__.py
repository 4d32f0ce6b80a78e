"""Formats of records in files and messages; none but text so far."""
