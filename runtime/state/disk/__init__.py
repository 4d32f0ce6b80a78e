"""Keyed state on the local disk: a backend over an ordered table of bytes, and RocksDB as such a table."""
