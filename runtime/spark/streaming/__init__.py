"""Unbounded jobs on Structured Streaming: one micro-batch is one epoch, and ends with a checkpoint."""
