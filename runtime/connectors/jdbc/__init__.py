"""Rows into PostgreSQL and MySQL, exactly once, under the names of Flink's JDBC connector."""
