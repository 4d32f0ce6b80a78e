"""Where Spark is installed: its scripts start what is not started from Python."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from opchain.runtime.errors import SparkUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping


def spark_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder that has Spark's `bin`: SPARK_HOME, else that of the installed pyspark.

    Raises:
        SparkUnavailableError: There is neither, or SPARK_HOME names something else.
    """
    named = environment.get("SPARK_HOME")
    if named:
        if not Path(named, "bin").is_dir():
            raise SparkUnavailableError(
                f"SPARK_HOME is '{named}', but it has no folder bin: set it to Spark's folder, "
                f"or unset it "
                "to use the installed pyspark"
            )
        return Path(named)
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise SparkUnavailableError(
            "pyspark is not installed, and SPARK_HOME is not set: pip install 'opchain[spark]'"
        )
    return Path(next(iter(spec.submodule_search_locations)))
