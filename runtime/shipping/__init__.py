"""Sends functions and modules of the user to other processes."""
