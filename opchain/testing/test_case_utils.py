"""Base classes for tests of programs. Each has an environment in `env`. PyFlink: pyflink.testing.test_case_utils.

    class OurTests(PyFlinkStreamingTestCase):
        def test_words(self):
            words = self.env.from_collection(["a b", "c"]).flat_map(lambda line: line.split())
            self.assert_equals(list(words.execute_and_collect()), ["a", "b", "c"])

Jobs run in process, with a parallelism of 2. The classes with a table environment are not supported.
"""

from __future__ import annotations

import shutil
import tempfile
import unittest
from typing import Any, ClassVar

from opchain.common import Configuration
from opchain.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

__all__ = [
    "PyFlinkBatchTestCase",
    "PyFlinkITTestCase",
    "PyFlinkStreamingTestCase",
    "PyFlinkTestCase",
    "PyFlinkUTTestCase",
]


class PyFlinkTestCase(unittest.TestCase):
    """Has a directory, `tempdir`, which is removed after the tests of the class."""

    tempdir: ClassVar[str]

    @classmethod
    def setUpClass(cls) -> None:
        """Creates the directory."""
        cls.tempdir = tempfile.mkdtemp()

    @classmethod
    def tearDownClass(cls) -> None:
        """Removes the directory."""
        shutil.rmtree(cls.tempdir, ignore_errors=True)

    @classmethod
    def assert_equals(cls, actual: list[Any], expected: list[Any]) -> None:
        """Compares two lists, ignoring the order. Sorts both in place.

        Raises:
            AssertionError: The lists differ. The message shows the difference.
        """
        actual.sort()
        expected.sort()
        assert actual == expected, f"{actual} is not {expected}"


class PyFlinkUTTestCase(PyFlinkTestCase):
    """Has a new environment for each test, in streaming mode."""

    env: StreamExecutionEnvironment

    def setUp(self) -> None:
        """Creates the environment."""
        self.env = _environment(RuntimeExecutionMode.STREAMING)


class PyFlinkITTestCase(PyFlinkTestCase):
    """Has one environment for the tests of the class, in streaming mode."""

    env: ClassVar[StreamExecutionEnvironment]

    @classmethod
    def setUpClass(cls) -> None:
        """Creates the directory and the environment."""
        super().setUpClass()
        cls.env = _environment(RuntimeExecutionMode.STREAMING)


class PyFlinkStreamingTestCase(PyFlinkITTestCase):
    """PyFlinkITTestCase under PyFlink's name for streaming tests."""


class PyFlinkBatchTestCase(PyFlinkITTestCase):
    """Has one environment for the tests of the class, in batch mode."""

    @classmethod
    def setUpClass(cls) -> None:
        """Creates the directory and the environment."""
        super().setUpClass()
        cls.env.set_runtime_mode(RuntimeExecutionMode.BATCH)


def _environment(mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
    configuration = Configuration().set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    return env.set_parallelism(2).set_runtime_mode(mode)
