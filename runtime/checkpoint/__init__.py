"""Checkpoints: their storage, contents and completion, and how jobs restore them."""
