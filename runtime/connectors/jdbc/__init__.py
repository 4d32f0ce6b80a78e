"""Sinks and a source for PostgreSQL, and sinks for MySQL, exactly once, with the names of Flink's JDBC connector."""
