"""Rows into PostgreSQL, exactly once, under the names of Flink's JDBC connector."""
