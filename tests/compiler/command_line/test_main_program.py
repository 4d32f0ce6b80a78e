import os
import sys
from typing import Any

import pytest

from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.command_line.program_file import (
    as_main_program,
    check_is_python,
    prints_to_stderr,
)


def test_as_main_program_sets_and_restores_sys_argv_and_sys_path(write: Any) -> None:
    path = write()
    argv, search_path = sys.argv, list(sys.path)
    with as_main_program(path, ["a"]):
        assert sys.argv == ["clicks.py", "a"]
        assert sys.path == [str(path.resolve().parent), *search_path]
    with pytest.raises(KeyError), as_main_program(path, ["a"]):
        raise KeyError
    assert sys.argv is argv
    assert sys.path == search_path


def test_prints_to_stderr_redirects_python_and_child_processes(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with prints_to_stderr():
        print("from Python", flush=True)  # noqa: T201
        os.system("echo from a child")  # noqa: S605 - a program may do so
    print("the answer", flush=True)  # noqa: T201
    out, err = capfd.readouterr()
    assert out == "the answer\n"
    assert "from Python" in err
    assert ("from a child" in err) == (sys.__stdout__.fileno() == 1)  # type: ignore[union-attr]


def test_syntax_is_checked_without_running_anything(write: Any) -> None:
    check_is_python(write("raise ValueError('never run')\n"))
    check_is_python(write("pattern = '\\d'\n"))  # its warning comes when it is run
    with pytest.raises(CommandError, match=r"clicks.py is not a Python program: .*\(clicks.py:2\)"):
        check_is_python(write("a = 1\nb = = 2\n"))


def test_a_saved_plan_is_refused_as_a_program(write: Any) -> None:
    with pytest.raises(CommandError, match=r"clicks.json is a saved plan, not a Python program"):
        check_is_python(write("{}\n", "clicks.json"))


def test_a_program_with_null_bytes_is_refused_without_a_line_number(write: Any) -> None:
    with pytest.raises(CommandError, match=r"not a Python program: .*null bytes$"):
        check_is_python(write("a = 1\0"))
