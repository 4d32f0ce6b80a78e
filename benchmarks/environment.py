"""The environments of the workloads: parallelism 2, on the active Spark session."""

from __future__ import annotations

from typing import Any

from opchain import Configuration, StreamExecutionEnvironment

PARALLELISM = 2


def environment(**settings: Any) -> StreamExecutionEnvironment:
    """An environment with some settings: configuration keys with "__" for "." and "_" for "-"."""
    configuration = Configuration()
    for name, value in settings.items():
        configuration.set_string(name.replace("__", ".").replace("_", "-"), str(value))
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(PARALLELISM)
    return env


def spark_session() -> Any:
    """A session with two cores, without progress bars or log output."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - after the path is set

    session = (
        SparkSession.builder.master(f"local[{PARALLELISM}]")
        .appName("opchain benchmarks")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session
