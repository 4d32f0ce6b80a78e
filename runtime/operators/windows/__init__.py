"""The window operator: which records a window holds, when it fires, and what comes out."""
