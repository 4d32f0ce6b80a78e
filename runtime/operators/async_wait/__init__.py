"""The operator behind AsyncDataStream: calls under way, and the queue that keeps their records in order."""
