"""Formats of records in files and messages: text lines, CSV, JSON, Parquet and Avro."""
