"""Unbounded jobs run as epochs: tasks that live from one to the next, and how they continue after a stop."""
