"""Conversion between records and columns: Spark's schemas, Arrow's batches."""
