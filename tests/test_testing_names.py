"""`opchain.testing`: what it offers, loaded when asked for."""

import doctest
from pathlib import Path

import pytest

import opchain.testing
from opchain.datastream import StreamExecutionEnvironment
from opchain.table import StreamTableEnvironment
from opchain.testing.test_case_utils import (
    PyFlinkBatchTableTestCase,
    PyFlinkBatchTestCase,
    PyFlinkStreamingTestCase,
    PyFlinkStreamTableTestCase,
    PyFlinkUTTestCase,
    exec_insert_table,
)


def test_opchain_testing_has_every_exported_name() -> None:
    assert set(opchain.testing.__all__) == set(dir(opchain.testing))
    for name in opchain.testing.__all__:
        assert callable(getattr(opchain.testing, name)) or name == "faults"
    assert callable(opchain.testing.faults.run_with_kills)


def test_an_unknown_name_of_opchain_testing_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'assert_fused'"):
        _ = opchain.testing.assert_fused


def test_the_documented_example_of_test_cases_runs() -> None:
    results = doctest.testmod(opchain.testing)
    assert (results.attempted > 0, results.failed) == (True, 0)


def words(env: StreamExecutionEnvironment) -> list[str]:
    return list(env.from_collection(["c", "b a"]).flat_map(str.split).execute_and_collect())


class OfStreams(PyFlinkStreamingTestCase):
    def test_equal(self) -> None:
        self.assert_equals(words(self.env), ["b", "a", "c"])

    def test_different(self) -> None:
        with pytest.raises(AssertionError, match=r"\['a', 'b', 'c'\] is not \['a', 'c'\]"):
            self.assert_equals(words(self.env), ["a", "c"])


class OfBatches(PyFlinkBatchTestCase):
    def test_equal(self) -> None:
        Path(self.tempdir, "words").touch()
        counted = self.env.from_collection([("a", 1), ("a", 2)]).key_by(lambda pair: pair[0]).sum(1)
        self.assert_equals(list(counted.execute_and_collect()), [("a", 3)])


class OfUnits(PyFlinkUTTestCase):
    def test_equal(self) -> None:
        assert self.env.get_parallelism() == 2
        self.assert_equals(words(self.env), ["a", "b", "c"])


def inserted(t_env: StreamTableEnvironment, folder: str) -> list[str]:
    t_env.execute_sql(
        f"CREATE TABLE o (a BIGINT) WITH ('connector'='filesystem','path'='{folder}','format'='csv')"
    )
    exec_insert_table(t_env.from_elements([(1,), (2,)], ["a"]), "o")
    files = [file for file in Path(folder).iterdir() if file.is_file()]
    return sorted("".join(file.read_text() for file in files).split())


class OfTables(PyFlinkStreamTableTestCase):
    def test_equal(self) -> None:
        self.assert_equals(inserted(self.t_env, self.tempdir), ["1", "2"])


class OfBatchTables(PyFlinkBatchTableTestCase):
    def test_equal(self) -> None:
        self.assert_equals(inserted(self.t_env, self.tempdir), ["1", "2"])
