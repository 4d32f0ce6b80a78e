"""A task's outputs: the choice of channels for records, and the buffers that they are written to."""
