from __future__ import annotations

import pickle
from typing import Any, cast

import pytest

from opchain.common import Types
from opchain.runtime.connectors.simple_sinks import PrintSinkFunction

NO_CONTEXT = cast("Any", None)


class Subtask:
    def __init__(self, index: int, parallelism: int) -> None:
        self.index = index
        self.parallelism = parallelism

    def get_index_of_this_subtask(self) -> int:
        return self.index

    def get_number_of_parallel_subtasks(self) -> int:
        return self.parallelism


def opened(function: PrintSinkFunction, index: int, parallelism: int) -> PrintSinkFunction:
    copy: PrintSinkFunction = pickle.loads(pickle.dumps(function))
    copy.open(cast("Any", Subtask(index, parallelism)))
    return copy


@pytest.mark.parametrize(
    ("identifier", "index", "parallelism", "line"),
    [
        (None, 0, 1, "7"),
        ("", 0, 1, "7"),
        (None, 2, 4, "3> 7"),
        ("id", 0, 1, "id> 7"),
        ("id", 2, 4, "id:3> 7"),
    ],
)
def test_the_prefix_of_a_line_is_that_of_flink(
    identifier: str | None, index: int, parallelism: int, line: str
) -> None:
    assert opened(PrintSinkFunction(identifier), index, parallelism).line(7) == line


@pytest.mark.parametrize("to_stderr", [False, True])
def test_each_record_is_a_line_on_stdout_or_stderr(
    capsys: pytest.CaptureFixture[str], to_stderr: bool
) -> None:
    function = opened(PrintSinkFunction("id", to_stderr), 0, 1)
    function.invoke("a", NO_CONTEXT)
    function.invoke(("b", 2), NO_CONTEXT)
    function.finish()
    out, err = capsys.readouterr()
    printed = "id> a\nid> ('b', 2)\n"
    assert (out, err) == (("", printed) if to_stderr else (printed, ""))


def test_records_of_a_declared_type_are_printed_as_in_java() -> None:
    function = PrintSinkFunction(record_type=Types.TUPLE([Types.STRING(), Types.BOOLEAN()]))
    assert opened(function, 0, 1).line(("a", True)) == "(a,true)"


def test_print_sink_reads_no_timestamps() -> None:
    assert not PrintSinkFunction().reads_timestamps
