"""The operator of AsyncDataStream: its calls, and the queue that keeps records in order."""
