"""From a vertex to the source of one Python function per chain."""
