"""A task's inputs: exchanges, watermarks by channel, chained sources, and sorted input in BATCH mode."""
