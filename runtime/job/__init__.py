"""A job while it runs and afterwards: its client, its status, what came of it."""
