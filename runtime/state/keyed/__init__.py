"""Keyed state: its contract, the hash map backend, TTL, and snapshots."""
