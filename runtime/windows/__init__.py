"""Window assigners, triggers and evictors."""
