"""Finds or makes the SparkSession that a job runs on."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession


def active_or_new_session() -> SparkSession:
    """The active session as it is; else a new one, by spark-submit's settings or `local[*]`.

    Workers of a local master must run this very interpreter: PYSPARK_PYTHON is set for them.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("opchain")
    if (
        "spark.master" not in os.environ.get("PYSPARK_SUBMIT_ARGS", "")
        and "SPARK_ENV_LOADED" not in os.environ
    ):
        builder = builder.master("local[*]").config("spark.ui.showConsoleProgress", "false")
    return builder.getOrCreate()
