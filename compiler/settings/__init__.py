"""What users configure: execution, checkpoints, state backends, slot sharing groups."""
