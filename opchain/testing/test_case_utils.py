"""Base classes for tests of programs. Each has an environment in `env`. PyFlink: pyflink.testing.test_case_utils.

    class OurTests(PyFlinkStreamingTestCase):
        def test_words(self):
            words = self.env.from_collection(["a b", "c"]).flat_map(lambda line: line.split())
            self.assert_equals(list(words.execute_and_collect()), ["a", "b", "c"])

Jobs run in process, with a parallelism of 2. The classes with `Table` in their names have a table environment in `t_env`.
"""

from __future__ import annotations

import shutil
import tempfile
import unittest
from typing import TYPE_CHECKING, Any, ClassVar

from opchain.common import Configuration
from opchain.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from opchain.table import StreamTableEnvironment

if TYPE_CHECKING:
    from opchain.common import JobExecutionResult
    from opchain.table import Table

__all__ = [
    "PyFlinkBatchTableTestCase",
    "PyFlinkBatchTestCase",
    "PyFlinkITTestCase",
    "PyFlinkStreamTableTestCase",
    "PyFlinkStreamingTestCase",
    "PyFlinkTestCase",
    "PyFlinkUTTestCase",
    "exec_insert_table",
]


def exec_insert_table(table: Table, table_path: str) -> JobExecutionResult:
    """Writes the rows of a table to another table, and waits for the end of the job."""
    client = table.execute_insert(table_path).get_job_client()
    assert client is not None
    return client.get_job_execution_result().result()


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


class PyFlinkStreamTableTestCase(PyFlinkITTestCase):
    """Has one environment for streams and tables, in streaming mode."""

    t_env: ClassVar[StreamTableEnvironment]

    @classmethod
    def setUpClass(cls) -> None:
        """Creates the directory and the environments."""
        super().setUpClass()
        cls.t_env = StreamTableEnvironment.create(cls.env)


class PyFlinkBatchTableTestCase(PyFlinkBatchTestCase):
    """Has one environment for streams and tables, in batch mode."""

    t_env: ClassVar[StreamTableEnvironment]

    @classmethod
    def setUpClass(cls) -> None:
        """Creates the directory and the environments."""
        super().setUpClass()
        cls.t_env = StreamTableEnvironment.create(cls.env)


def _environment(mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
    configuration = Configuration().set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    return env.set_parallelism(2).set_runtime_mode(mode)
