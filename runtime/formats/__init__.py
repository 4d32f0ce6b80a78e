"""Records as text lines, CSV, JSON, Parquet and Avro: in files and in messages."""
