"""Timers by key: registering, firing, and their part of a snapshot."""
