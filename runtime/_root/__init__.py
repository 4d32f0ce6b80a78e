"""Flink DataStream programs on Spark, from Python."""
