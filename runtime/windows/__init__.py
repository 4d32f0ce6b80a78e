"""Windows: what they are, which a record falls into, when they fire, what is evicted."""
