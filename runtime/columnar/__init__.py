"""Records as columns: Spark's schemas, Arrow's batches, and the records between the two."""
