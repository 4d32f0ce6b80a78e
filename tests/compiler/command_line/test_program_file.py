import json
import sys
from pathlib import Path
from typing import Any

import pytest

from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.command_line.program_file import ProgramFile, capture_program, program_file

HEAD = """\
import sys
from opchain import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
"""
DRAWN = HEAD + "env.from_sequence(1, 9).map(abs).print()\n"


def test_a_program_is_run_as_main_with_its_arguments(write: Any) -> None:
    path = write(
        DRAWN
        + "assert __name__ == '__main__'\n"
        + "assert sys.argv == ['clicks.py', '--input', 'x'], sys.argv\n"
        + "import os; assert sys.path[0] == os.path.dirname(os.path.abspath(__file__))\n"
        + "env.execute('mine')\n"
    )
    argv, search_path = list(sys.argv), list(sys.path)
    captured = capture_program(ProgramFile(path), ["--input", "x"])
    assert [(job.job_name, str(job.call_site)) for job in captured.jobs] == [
        ("mine", "clicks.py:8")
    ]
    assert (captured.notes, captured.failure) == ([], None)
    assert (sys.argv, sys.path) == (argv, search_path)


def test_execute_is_intercepted_in_each_of_its_forms(write: Any) -> None:
    path = write(
        HEAD
        + "numbers = env.from_sequence(1, 9).map(abs)\n"
        + "numbers.print()\n"
        + "result = env.execute()\n"
        + "assert result.get_net_runtime() == 0\n"
        + "numbers.print()\n"
        + "client = env.execute_async('async')\n"
        + "client.get_job_execution_result().result()\n"
        + "assert list(numbers.execute_and_collect()) == []\n"
    )
    captured = capture_program(ProgramFile(path))
    assert len(captured.jobs) == 3
    assert [job.method for job in captured.jobs[:2]] == ["execute", "execute_async"]
    assert captured.failure is None


def test_of_several_jobs_the_first_or_the_chosen_one_is_taken(write: Any) -> None:
    path = write(DRAWN + "env.execute('a')\nenv.from_sequence(1, 2).print()\nenv.execute()\n")
    captured = capture_program(ProgramFile(path))
    assert captured.choice(None) == (
        "clicks.py has 2 jobs: 1 is 'a' (clicks.py:5), 2 is 'unnamed' (clicks.py:7); "
        "this is job 1, --job N chooses"
    )
    assert captured.choice(2) is None
    assert captured.job(2) is captured.jobs[1]
    with pytest.raises(CommandError, match=r"clicks\.py has 2 jobs; there is no job 3"):
        captured.job(3)


def test_a_program_without_execute_is_captured_with_a_note(write: Any) -> None:
    captured = capture_program(ProgramFile(write(DRAWN)))
    assert len(captured.jobs) == 1
    assert captured.notes == [
        "clicks.py never calls execute(); this is the program of its environment (clicks.py:3)"
    ]


def test_operators_added_after_the_last_execute_are_noted(write: Any) -> None:
    path = write(DRAWN + "env.execute()\nenv.from_sequence(1, 2).map(abs).print()\n")
    captured = capture_program(ProgramFile(path))
    assert captured.notes == [
        "clicks.py adds 2 more operators after its last execute(), which run in no job"
    ]


ERRORS: dict[str, tuple[str, str]] = {
    "fails": (DRAWN + "1 / 0\n", "clicks.py failed at clicks.py:5: ZeroDivisionError: division by"),
    "fails without a message": (HEAD + "assert False\n", "failed at clicks.py:4: AssertionError"),
    "fails in a function": (
        HEAD + "def load():\n    open('missing.txt')\nload()\n",
        "clicks.py failed at clicks.py:5: FileNotFoundError: [Errno 2] No such file",
    ),
    "fails inside Python": (
        HEAD + "import json\njson.loads('{')\n",
        "clicks.py failed at clicks.py:5: JSONDecodeError: Expecting property name",
    ),
    "fails with a note": (
        HEAD + "error = ValueError('a')\nerror.__notes__ = ['look there']\nraise error\n",
        "clicks.py failed at clicks.py:6: ValueError: a; look there",
    ),
    "is refused": (
        HEAD + "env.from_sequence(1, 9).map(abs).set_parallelism(-2)\n",
        "clicks.py is refused at clicks.py:4: ",
    ),
    "uses a name that is not supported": (
        "from opchain.table.expressions import lag\nlag('price')\n",
        "clicks.py is refused at clicks.py:2: opchain.table.expressions.lag is not supported",
    ),
    "exits": (DRAWN + "sys.exit(3)\n", "clicks.py calls sys.exit(3) at clicks.py:5"),
    "exits with a message": (
        DRAWN + "sys.exit('no input')\n",
        "clicks.py exits with 'no input' at clicks.py:5",
    ),
    "exits before it draws": (
        HEAD + "sys.exit()\n",
        "clicks.py calls sys.exit() at clicks.py:4 before it executes a job",
    ),
    "is empty": ("", "clicks.py creates no StreamExecutionEnvironment and executes no job; if a"),
    "draws nothing": (HEAD, "clicks.py executes no job and its environment (clicks.py:3) is empty"),
    "draws a source alone": (HEAD + "env.from_sequence(1, 9)\n", "(a source alone does nothing)"),
    "executes nothing": (HEAD + "env.execute()\n", "clicks.py:4"),
    "is not Python": (
        "# Title\n\nThis is text.\n",
        "clicks.py is not a Python program: invalid syntax (clicks.py:3)",
    ),
    "holds null bytes": ("a = 1\0\n", "clicks.py is not a Python program: source code string"),
    "imports what is missing": (
        "import no_such_module\n",
        "clicks.py failed at clicks.py:1: ModuleNotFoundError: No module named 'no_such_module'",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_a_program_without_a_job_is_an_error_of_one_sentence(case: str, write: Any) -> None:
    text, message = ERRORS[case]
    path = write(text)
    with pytest.raises(CommandError) as refused:
        capture_program(ProgramFile(path))
    assert message in refused.value.message
    assert "\n" not in refused.value.message
    assert refused.value.exit_code == 2


def test_sys_exit_with_success_is_not_a_failure(write: Any) -> None:
    for code in ("", "0", "None"):
        captured = capture_program(ProgramFile(write(DRAWN + f"env.execute()\nsys.exit({code})\n")))
        assert captured.failure is None
    drawn = capture_program(ProgramFile(write(DRAWN + "sys.exit(0)\n")))
    assert len(drawn.jobs) == 1


@pytest.mark.parametrize(
    "end", ["1 / 0", "sys.exit(1)", "raise type('E', (OSError,), {'code': 0})"]
)
def test_a_failure_after_execute_keeps_the_captured_job(end: str, write: Any) -> None:
    captured = capture_program(ProgramFile(write(DRAWN + f"env.execute()\n{end}\n")))
    assert len(captured.jobs) == 1
    assert captured.failure is not None
    assert "at clicks.py:6" in captured.failure.message


def test_a_function_is_called_with_a_fresh_environment(write: Any) -> None:
    path = write(
        "from dataclasses import dataclass\n"
        "@dataclass\nclass Click:\n    user: str\n"
        "def build(env):\n    env.from_sequence(1, 9).map(abs).print()\n"
        "if __name__ == '__main__':\n    raise SystemExit(9)\n"
    )
    captured = capture_program(program_file(f"{path}:build"))
    assert len(captured.jobs) == 1
    assert captured.notes == []
    assert "clicks" not in sys.modules


def test_a_function_may_execute_its_job(write: Any) -> None:
    path = write("def build(env):\n    env.from_sequence(1, 9).print()\n    env.execute('b')\n")
    assert [job.job_name for job in capture_program(program_file(f"{path}:build")).jobs] == ["b"]


def test_a_program_may_have_the_name_of_an_imported_module(write: Any) -> None:
    path = write("def build(env):\n    env.from_sequence(1, 9).print()\n", "json.py")
    capture_program(program_file(f"{path}:build"))
    assert sys.modules["json"] is json


def test_a_missing_function_of_the_program_is_an_error_with_its_name(write: Any) -> None:
    with pytest.raises(CommandError, match=r"clicks.py has no function built\(env\)"):
        capture_program(program_file(f"{write()}:built"))


def test_program_file_splits_path_and_function_and_refuses_missing_files(write: Any) -> None:
    path = write()
    assert program_file("clicks.py") == ProgramFile(path)
    assert program_file("clicks.py:build") == ProgramFile(path, "build")
    assert str(program_file("clicks.py:build")) == "clicks.py:build"
    odd = write(name="odd:name")
    assert program_file("odd:name") == ProgramFile(odd)
    with pytest.raises(CommandError, match=r"there is no file nope\.py"):
        program_file("nope.py")
    with pytest.raises(CommandError, match=r"there is no file nope\.py"):
        program_file("nope.py:build")
    Path("folder").mkdir()
    with pytest.raises(CommandError, match="folder is a folder; pass a Python file"):
        program_file("folder")


def test_each_program_imports_modules_from_its_own_folder(write: Any) -> None:
    for folder, name in (("old", "first"), ("new", "second")):
        write(f"NAME = '{name}'\n", f"{folder}/shared.py")
        write("", f"{folder}/package/__init__.py")
        write(f"NAME = '{name}'\n", f"{folder}/package/inner.py")
        path = write(
            "from shared import NAME\nfrom package.inner import NAME as INNER\n"
            + DRAWN
            + "assert NAME == INNER\nenv.execute(NAME)\n",
            f"{folder}/job.py",
        )
        [job] = capture_program(ProgramFile(path)).jobs
        assert job.job_name == name
    assert not {"shared", "package", "package.inner"} & set(sys.modules)


def test_modules_of_opchain_stay_imported_after_a_program(write: Any) -> None:
    before = sys.modules["opchain.compiler.dsl.environment"]
    capture_program(ProgramFile(write(DRAWN)))
    assert sys.modules["opchain.compiler.dsl.environment"] is before


def test_a_missing_function_is_an_error_even_if_the_file_executes_a_job(write: Any) -> None:
    path = write(DRAWN + "env.execute()\n")
    with pytest.raises(CommandError, match=r"clicks\.py has no function build\(env\)"):
        capture_program(ProgramFile(path, "build"))
