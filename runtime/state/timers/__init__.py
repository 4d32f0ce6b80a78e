"""TODO runtime/state/timers."""
