"""TODO runtime/state/rocksdb."""
