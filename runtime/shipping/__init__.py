"""Functions and modules of the user on their way to other processes."""
