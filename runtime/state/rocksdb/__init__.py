"""The RocksDB state backend: state on the disk of the executor."""
