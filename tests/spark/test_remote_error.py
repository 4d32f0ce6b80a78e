from __future__ import annotations

import sys
import threading
from typing import Any

import cloudpickle
import pytest

from opchain.runtime.errors import (
    TaskFailedError,
    UnpicklableRecordError,
    add_note,
    failure_lines,
)
from opchain.runtime.spark.remote_error import (
    MOST_BYTES,
    ErrorSeal,
    ExecutorTracebackError,
    frames_on_executor,
    original_exception,
    showing_whole_tracebacks,
    without_token,
)

SEAL = ErrorSeal()


class TwoArgumentsError(Exception):
    def __init__(self, one: int, other: str) -> None:
        super().__init__(f"{one} and {other}")
        self.one = one


class LockHoldingError(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


class LoudError(Exception):
    def __str__(self) -> str:
        return "LOUD"


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("mute")


def arrived(error: BaseException) -> BaseException:
    """The error after it was sent through the text of Spark's error."""
    parts = SEAL.unsealed(
        f"An error occurred\n: SparkException: {SEAL.sealed(error)}\n\tat x.y.Z\n"
    )
    assert parts is not None
    return original_exception(parts)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        KeyError("key"),
        OSError(28, "No space left on device"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        TwoArgumentsError(1, "two"),
        LoudError("quiet"),
        UnpicklableRecordError("r", "why", "where"),
        StopIteration(3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_type_message_and_arguments_of_an_error_are_restored(error: Exception) -> None:
    add_note(error, "in 'map' (clicks.py:14)")
    back = arrived(error)
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert back.args == error.args
    assert back.__notes__ == ["in 'map' (clicks.py:14)"]  # type: ignore[attr-defined]


def test_attributes_of_an_error_are_restored() -> None:
    back = arrived(TwoArgumentsError(1, "two"))
    assert isinstance(back, TwoArgumentsError)
    assert back.one == 1


def test_unpicklable_attributes_of_an_error_are_dropped() -> None:
    back = arrived(LockHoldingError("busy"))
    assert type(back) is LockHoldingError
    assert str(back) == "busy"
    assert not hasattr(back, "lock")


def test_an_error_class_of_the_main_program_is_the_same_class_again() -> None:
    local = type("Local", (Exception,), {"__module__": "__main__"})
    shipped = cloudpickle.loads(cloudpickle.dumps(local))
    back = arrived(shipped("mine"))
    assert type(back) is local


def test_an_error_whose_str_fails_is_still_reported() -> None:
    back = arrived(MuteError("x"))
    assert type(back) is MuteError


def test_a_huge_error_is_sent_without_its_huge_attributes() -> None:
    error = ValueError("x" * (MOST_BYTES + 1))
    back = arrived(error)
    assert type(back) is TaskFailedError
    assert str(back).startswith("ValueError: xxx")


def test_an_error_of_a_class_that_the_driver_cannot_import_is_named() -> None:
    parts = SEAL.unsealed(str(SEAL.sealed(TwoArgumentsError(1, "two"))))
    assert parts is not None
    unknown = type(parts)(
        b"\x80\x05\x8c\x07missing\x8c\x01x\x93.", "missing.x", "1 and two", (), ""
    )
    back = original_exception(unknown)
    assert type(back) is TaskFailedError
    assert str(back) == "missing.x: 1 and two"


def test_the_cause_is_the_traceback_of_the_executor() -> None:
    spark_error = RuntimeError("spark")
    with pytest.raises(ValueError, match="no") as raised:
        int("no")
    parts = SEAL.unsealed(str(SEAL.sealed(raised.value)))
    assert parts is not None
    cause = original_exception(parts, spark_error).__cause__
    assert isinstance(cause, ExecutorTracebackError)
    assert cause.spark_error is spark_error
    assert "test_remote_error.py" in str(cause)
    assert "ValueError: invalid literal" in cause.text
    with showing_whole_tracebacks():
        assert str(cause) == f"on the executor\n{cause.text}"


@pytest.mark.parametrize("text", ["", "no token", "<opchain error AAAA>", "<opchain error !>"])
def test_other_texts_contain_no_error(text: str) -> None:
    assert SEAL.unsealed(text) is None


def test_a_truncated_token_contains_no_error() -> None:
    token = str(SEAL.sealed(ValueError("no")))
    assert SEAL.unsealed(token[:40] + ">") is None


def test_tokens_are_removed_from_texts_for_users() -> None:
    text: Any = f"before {SEAL.sealed(ValueError('no'))} after"
    assert without_token(text) == "before  after"


def test_a_long_traceback_is_truncated_in_the_middle() -> None:
    def deep(levels: int) -> None:
        if levels == 0:
            raise ValueError("bottom " + "y" * 30_000)
        deep(levels - 1)

    try:
        deep(3)
    except ValueError as raised:
        parts = SEAL.unsealed(str(SEAL.sealed(raised)))
    assert parts is not None
    assert len(parts.traceback) < 21_000
    assert parts.traceback.startswith("Traceback")


TRACEBACK = """\
Traceback (most recent call last):
  File "/tmp/opchain.zip/opchain/runtime/task/operator_chain.py", line 184, in process_batch
    function(values)
  File "<generated: numbers -> halve>", line 4, in process_0
    value_1 = half_1(value)
              ^^^^^^^^^^^^^
  File "there/clicks.py", line 5, in half
    return inner(n)
  File "there/clicks.py", line 9, in inner
    return 1 // n
           ~~^^~~
ZeroDivisionError: by zero
"""


def test_the_frames_of_the_users_functions_are_shown() -> None:
    cause = ExecutorTracebackError(TRACEBACK)
    assert str(cause).splitlines() == [
        "on the executor",
        '  File "there/clicks.py", line 5, in half',
        "    return inner(n)",
        '  File "there/clicks.py", line 9, in inner',
        "    return 1 // n",
    ]
    java = ExecutorTracebackError("org.apache.Error: no\n" + "\tat a.b.C\n" * 80)
    assert str(java).splitlines() == [
        "on the executor",
        "org.apache.Error: no",
        "\tat a.b.C",
        "\tat a.b.C",
    ]
    assert len(java.text.splitlines()) == 81


def test_the_lines_of_a_failure_end_with_its_notes() -> None:
    error = ZeroDivisionError("by zero")
    add_note(error, "in 'halve' (clicks.py:5), at record 0")
    error.__cause__ = ExecutorTracebackError(TRACEBACK)
    frames = frames_on_executor(error)
    assert failure_lines(error, frames, 4) == [
        '  File "there/clicks.py", line 9, in inner',
        "    return 1 // n",
        "ZeroDivisionError: by zero",
        "in 'halve' (clicks.py:5), at record 0",
    ]
    assert failure_lines(error, frames, 1) == failure_lines(error, frames, 4)[2:]


def test_the_lines_of_a_failure_have_the_error_of_a_quoted_traceback() -> None:
    quoted = "".join(
        f'Traceback (most recent call last):\n  File "there/{number}.py", line 5, in half\n    return inner(n)\n'
        for number in range(3)
    )
    error = RuntimeError(f"from the Python worker:\n{quoted}ValueError: no\nin 'halve'\n")
    assert failure_lines(error, []) == [
        "RuntimeError: from the Python worker:",
        "ValueError: no",
        "in 'halve'",
    ]
    for cut_short in ("a\nb\nc\nd", f"a\nb\n{quoted}"):
        assert failure_lines(RuntimeError(cut_short), []) == ["RuntimeError: a", "b", "..."]


def test_ipython_shows_a_failure_in_a_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)  # another test may have imported it
    assert not hasattr(arrived(ValueError("no")), "_render_traceback_")
    monkeypatch.setitem(sys.modules, "IPython", sys)
    error: Any = arrived(ValueError("no\n" * 90))
    add_note(error, "in 'map' (clicks.py:14)")
    lines = error._render_traceback_()
    assert lines[0] == "ValueError: no"
    assert lines[-2:] == [
        "in 'map' (clicks.py:14)",
        "the error's __cause__.text has the whole traceback of the executor",
    ]
    assert len(lines) <= 12
