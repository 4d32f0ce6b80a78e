"""`opchain.spark` has what it lists, loads it late, and needs no pyspark to be imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

import opchain.spark


def test_opchain_spark_has_every_exported_name() -> None:
    for name in opchain.spark.__all__:
        assert getattr(opchain.spark, name).__name__ == name
    assert set(opchain.spark.__all__) <= set(dir(opchain.spark))


def test_an_unknown_name_of_opchain_spark_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'opchain\.spark' has no attribute 'nothing'"):
        opchain.spark.nothing  # noqa: B018


def test_sources_and_sinks_are_drawn_without_pyspark() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from opchain.spark import SparkSource, SparkSink\n"
        "SparkSource('csv'), SparkSink('csv')\n"
        "print('pyarrow' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert ran.stdout == "False\n"
