"""Checkpoints: where they are stored, what is in them, who completes them, and who starts from them."""
