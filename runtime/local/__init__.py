"""Jobs in this process, without Spark."""
