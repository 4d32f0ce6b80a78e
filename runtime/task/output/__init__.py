"""A task's outputs: which channel a record takes, and the buffers that it is written to."""
