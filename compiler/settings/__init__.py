"""Settings of users: execution, checkpoints, state backends, slot sharing groups."""
