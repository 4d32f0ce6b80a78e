import json
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from opchain import StreamExecutionEnvironment
from opchain.common import Configuration
from opchain.compiler.command_line.failures import user_traceback
from opchain.runtime.errors import add_note
from opchain.runtime.spark.remote_error import ExecutorTracebackError

HERE = Path(__file__)


def local_environment() -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def raised_by(act: Any) -> Exception:
    try:
        act()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at
        return error
    raise AssertionError("nothing was raised")


def run_with(function: Any) -> None:
    env = local_environment()
    env.from_collection(["a"]).map(function).print()
    env.execute()


def read(text: str) -> Any:
    try:  # so the function is called, not inlined
        return json.loads(text)
    finally:
        HERE.stat()


def frames(text: str) -> list[tuple[str, str]]:
    """File name and function of each frame."""
    heads = [line.split('"') for line in text.splitlines() if line.startswith('  File "')]
    return [(Path(name).name, rest.rpartition(" in ")[2]) for _, name, rest in heads]


def test_user_traceback_leaves_out_frames_of_opchain() -> None:
    error = raised_by(lambda: run_with(read))
    told = user_traceback(error, HERE)
    assert told.is_shortened
    here = HERE.name
    assert frames(told.text) == [(here, "run_with"), (here, "read")]
    assert "json.decoder.JSONDecodeError: Expecting value" in told.text
    whole = user_traceback(error, HERE, whole=True)
    assert not whole.is_shortened
    assert ("operator_chain.py", "process_batch") in frames(whole.text)


@pytest.mark.parametrize(
    ("source", "last"),
    [
        ("first = function[0]", ("<generated: vertex 1>", "<module>")),
        ("first = function()", (HERE.name, "fails")),
    ],
)
def test_user_traceback_shows_generated_code_that_fails_itself(
    source: str, last: tuple[str, str]
) -> None:
    def fails() -> None:
        raise TypeError

    code = compile(source, "<generated: vertex 1>", "exec")
    error = raised_by(lambda: exec(code, {"function": fails}))  # noqa: S102 - as opchain does
    told = user_traceback(error, HERE)
    assert frames(told.text)[-1] == last
    assert ("<generated" in told.text) == (source == "first = function[0]")


def test_an_error_without_a_line_of_the_user_shows_where_it_was_raised() -> None:
    trace = raised_by(lambda: run_with(read)).__traceback__
    while trace is not None and "operator_chain" not in trace.tb_frame.f_code.co_filename:
        trace = trace.tb_next
    assert trace is not None
    alone = TracebackType(None, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
    told = user_traceback(ValueError("x").with_traceback(alone), Path("other.py"))
    assert frames(told.text) == [("operator_chain.py", "process_batch")]


def test_tracebacks_of_causes_are_shortened_too() -> None:
    def fail() -> None:
        try:
            run_with(read)
        except ValueError as error:
            raise RuntimeError("stopped") from error

    told = user_traceback(raised_by(fail), HERE)
    assert "caused by json.decoder.JSONDecodeError: Expecting value" in told.text
    assert "operator_chain.py" not in told.text


def test_causes_inside_opchain_are_left_out() -> None:
    """The message of the error says what the cause was."""
    configuration = Configuration()
    configuration.set_string("parallelism.default", "two")
    told = user_traceback(
        raised_by(lambda: StreamExecutionEnvironment.get_execution_environment(configuration)), HERE
    )
    assert told.is_shortened
    assert "direct cause" not in told.text
    assert told.text.splitlines()[-1] == (
        "ValueError: configuration key 'parallelism.default': 'two' is not a whole number"
    )


def fails_deeply(value: Any) -> Any:
    try:
        return {}[value]
    except KeyError as error:
        raise ValueError("line\n" * 40) from error


def calls_itself(value: Any) -> Any:
    return calls_itself([value])


@pytest.mark.parametrize(
    ("function", "last"), [(fails_deeply, "caused by KeyError: 'a'"), (calls_itself, None)]
)
def test_a_failure_in_this_process_has_twelve_lines_at_most(
    function: Any, last: str | None
) -> None:
    told = user_traceback(raised_by(lambda: run_with(function)), HERE)
    assert told.is_shortened
    lines = told.text.splitlines()
    assert len(lines) <= 11, "the note that -v shows all is the twelfth"
    assert lines[-1].startswith("in task ")
    assert lines[-2].startswith("in 'Map' (test_user_traceback.py:")
    if last is not None:
        assert lines[-3].startswith(last)
    whole = user_traceback(raised_by(lambda: run_with(function)), HERE, whole=True)
    assert len(whole.text.splitlines()) > 20


ON_AN_EXECUTOR = """\
Traceback (most recent call last):
  File "/tmp/opchain.zip/opchain/runtime/task/operator_chain.py", line 184, in process_batch
    function(values)
  File "<generated: numbers -> halve>", line 4, in process_0
    value_1 = half_1(value)
              ^^^^^^^^^^^^^
  File "there/clicks.py", line 5, in half
    return 1 // n
           ~~^^~~
ZeroDivisionError: by zero
"""


@pytest.mark.parametrize("kept", ["clicks.py", "<generated: numbers -> halve>"])
def test_the_traceback_of_an_executor_is_shortened_too(kept: str) -> None:
    users = ON_AN_EXECUTOR.index('  File "there'), ON_AN_EXECUTOR.index("ZeroDivisionError")
    if kept == "clicks.py":
        text = ON_AN_EXECUTOR
    else:
        text = ON_AN_EXECUTOR[: users[0]] + ON_AN_EXECUTOR[users[1] :]

    def fail() -> None:
        raise ZeroDivisionError("by zero") from ExecutorTracebackError(text)

    error = raised_by(fail)
    told = user_traceback(error, HERE)
    assert told.is_shortened
    lines = told.text.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ZeroDivisionError: by zero"
    assert [Path(name).name for name, _ in frames(told.text)] == [Path(__file__).name, kept]
    assert "^" not in told.text
    assert text.rstrip() in user_traceback(error, HERE, whole=True).text


@pytest.mark.parametrize("message", ["short", "line\n" * 40, "x" * 9_000, ""])
@pytest.mark.parametrize("depth", [0, 1, 50])
@pytest.mark.parametrize("notes", [0, 3])
def test_a_failure_of_a_task_has_twelve_lines_at_most(message: str, depth: int, notes: int) -> None:
    """Three notes: the operator with its line and record, the task, the epoch with its checkpoint."""
    frame = '  File "there/clicks.py", line 5, in half\n    return half(n)\n           ^^^^^^^\n'
    text = f"Traceback (most recent call last):\n{frame * depth}ValueError: {message}"

    def fail() -> None:
        error = ValueError(message)
        for number in range(notes):
            add_note(error, f"note {number}\nof several lines")
        raise error from ExecutorTracebackError(text)

    told = user_traceback(raised_by(fail), HERE)
    lines = told.text.splitlines()
    assert len(lines) <= 11, "the note that -v shows all is the twelfth"
    assert all(len(line) <= 500 for line in lines)
    assert [line for line in lines if line.startswith("note")] == [
        f"note {number} of several lines" for number in range(notes)
    ]
    assert any("there/clicks.py" in line for line in lines) is (depth > 0)
    assert any(line.startswith("ValueError") for line in lines)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (
            lambda: local_environment().from_sequence(1, 2).mapp,
            "has no attribute 'mapp'. Did you mean: 'map'?",
        ),
        (
            lambda: environmnet,  # type: ignore[name-defined]  # noqa: F821
            "name 'environmnet' is not defined. Did you mean: 'environment'?",
        ),
        (lambda: "".joim, "no attribute 'joim'. Did you mean: 'join'?"),  # type: ignore[attr-defined]
        (
            lambda: exec("from opchain.datastream import StreamExecutionEnviroment"),  # noqa: S102
            ". Did you mean: 'StreamExecutionEnvironment'?",
        ),
        (
            lambda: exec("from opchain.datastream.conectors.kafka import KafkaSource"),  # noqa: S102
            "'opchain.datastream.conectors'. Did you mean: 'opchain.datastream.connectors'?",
        ),
    ],
)
def test_a_similar_name_is_suggested_on_every_python_version(act: Any, said: str) -> None:
    text = user_traceback(raised_by(act), HERE).text
    assert text.splitlines()[-1].endswith(said)


environment = None


@pytest.mark.parametrize("act", [lambda: "".qqqqqqq, lambda: int("x"), lambda: {}["jion"]])  # type: ignore[attr-defined]
def test_no_name_is_suggested_if_none_is_similar(act: Any) -> None:
    assert "Did you mean" not in user_traceback(raised_by(act), HERE).text


def test_an_object_whose_dir_fails_does_not_hide_the_error() -> None:
    class Odd:
        def __dir__(self) -> list[str]:
            raise ValueError("no list")

    told = user_traceback(raised_by(lambda: Odd().names), HERE)  # type: ignore[attr-defined]
    assert told.text.splitlines()[-1].endswith("has no attribute 'names'")
