"""The public testing kit: chaining assertions, clocks, harnesses."""
