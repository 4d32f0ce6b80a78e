"""Starts the parts of Spark that most tests use. CI archives the classes that Java loads for it."""

import tempfile

from pyspark.sql import SparkSession

session = SparkSession.builder.master("local[2]").getOrCreate()
session.sparkContext.parallelize(range(9), 3).map(lambda x: (x % 2, x)).reduceByKey(max).collect()
with tempfile.TemporaryDirectory() as folder:
    stream = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    epochs = stream.writeStream.foreachBatch(lambda rows, _: rows.count())
    query = epochs.option("checkpointLocation", folder).trigger(processingTime="0 seconds").start()
    while query.lastProgress is None:
        query.awaitTermination(1)
    query.stop()
session.stop()
