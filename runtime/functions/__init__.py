"""What users subclass: functions by kind, and plain callables in their place."""
