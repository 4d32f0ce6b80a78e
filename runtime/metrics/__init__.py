"""Metrics of operators and tasks, and how they reach the driver."""
