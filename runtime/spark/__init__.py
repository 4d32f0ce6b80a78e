"""The driver side on Spark; the only folder that imports pyspark."""
