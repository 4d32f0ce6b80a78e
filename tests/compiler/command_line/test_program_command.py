from __future__ import annotations

import json
from typing import Any

import click
import pytest

from opchain.compiler.cli import main
from opchain.compiler.command_line.program_command import (
    ProgramCommand,
    is_saved_plan,
    read_saved_plan,
)

PROGRAM = """\
import sys
from opchain import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 2).print()
env.execute()
print(sys.argv[1:], file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("command", "given", "meant"),
    [
        ("plan", "--staeg", "--stage"),
        ("plan", "--stages=job-graph", "--stage"),
        ("code", "--vertx", "--vertex"),
        ("explain", "--jobs", "--job"),
        ("run", "--quite", "--quiet"),
    ],
)
def test_an_option_similar_to_ours_is_noted_and_passed_to_the_program(
    write: Any, run: Any, command: str, given: str, meant: str
) -> None:
    write(PROGRAM)
    local = ["--local"] if command == "run" else []
    done = run(command, *local, "clicks.py", given)
    assert done.exit_code == 0
    name = given.partition("=")[0]
    assert f"note: {name} goes to the program; opchain's own option is {meant};" in done.stderr
    assert f"['{given}']" in done.stderr


def test_every_command_with_a_program_notes_misspelt_options() -> None:
    def commands(group: click.Group) -> list[click.Command]:
        found = []
        for command in group.commands.values():
            found += commands(command) if isinstance(command, click.Group) else [command]
        return found

    for command in commands(main):
        takes_arguments = any(parameter.name == "arguments" for parameter in command.params)
        assert isinstance(command, ProgramCommand) == takes_arguments, command.name


def test_a_misspelt_option_is_noted_before_the_program_runs(write: Any, run: Any) -> None:
    write("raise SystemExit(3)\n")
    done = run("run", "clicks.py", "--locl")
    assert done.exit_code == 3
    assert "--locl goes to the program; opchain's own option is --local;" in done.stderr


def test_an_option_of_opchain_itself_comes_before_the_command(write: Any, run: Any) -> None:
    write(PROGRAM)
    done = run("plan", "clicks.py", "--traceback")
    assert "for opchain's option write: opchain --traceback plan" in done.stderr


@pytest.mark.parametrize(
    "given",
    [
        ["--input", "--output-folder", "--to", "4"],
        ["locl", "-l", "-"],
        ["--", "--locl", "--job", "--traceback"],
    ],
)
def test_options_that_differ_from_ours_cause_no_note(
    write: Any, run: Any, given: list[str]
) -> None:
    write(PROGRAM)
    done = run("plan", "clicks.py", *given)
    assert done.exit_code == 0
    assert "note:" not in done.stderr
    assert f"{[word for word in given if word != '--']}" in done.stderr


def test_unknown_options_are_passed_to_the_program(write: Any, run: Any) -> None:
    write("import sys\nprint(sys.argv)\n" + PROGRAM_TAIL)
    done = run("plan", "clicks.py", "--stage", "job-graph", "--input", "README.md", "-x", "file")
    assert "['clicks.py', '--input', 'README.md', '-x', 'file']" in done.stderr
    assert done.exit_code == 0


def test_everything_after_two_dashes_is_passed_to_the_program(write: Any, run: Any) -> None:
    write("import sys\nprint(sys.argv)\n" + PROGRAM_TAIL)
    done = run("plan", "clicks.py", "--", "--stage", "mine", "--help")
    assert "['clicks.py', '--stage', 'mine', '--help']" in done.stderr
    assert done.exit_code == 0


def test_settings_of_the_command_line_apply_to_new_environments(write: Any, run: Any) -> None:
    write()
    done = run(
        "plan", "clicks.py", "-D", "parallelism.default=7",
        "-Dpipeline.operator-chaining.enabled = false",
    )  # fmt: skip
    assert "vertex 4  x7" in done.stdout
    assert "chaining is disabled for the whole job" in done.stdout


def test_malformed_settings_are_refused(write: Any, run: Any) -> None:
    write()
    for bad in ("novalue", "=5"):
        done = run("plan", "clicks.py", "-D", bad)
        assert done.exit_code == 2
        assert f"'{bad}' is not KEY=VALUE" in done.stderr
    wrong = run("plan", "clicks.py:build", "-D", "parallelism.default=x")
    assert wrong.exit_code == 2
    assert "parallelism.default" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_settings_are_checked_before_a_program_runs(write: Any, run: Any) -> None:
    write("print('runs')\n")
    for bad, problem in (
        ("execution.runtime-mode=BATHC", ": 'BATHC' is not one of STREAMING, BATCH, AUTOMATIC"),
        ("opchain.streaming.record-epoch=true", " is unknown"),
    ):
        done = run("run", "clicks.py", "-D", bad)
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"configuration key '{bad.partition('=')[0]}'{problem}" in done.stderr


def test_json_files_are_saved_plans(write: Any, run: Any) -> None:
    write()
    saved = run("plan", "clicks.py", "--format", "json").stdout
    path = write(saved, "saved.JSON")
    assert is_saved_plan("saved.JSON")
    assert not is_saved_plan("clicks.py")
    assert read_saved_plan(str(path)).job_name == json.loads(saved)["job_name"]


PROGRAM_TAIL = """
from opchain import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 9).map(abs).print()
env.execute()
"""


@pytest.mark.parametrize("command", ["plan", "explain"])
def test_options_without_effect_on_a_saved_plan_are_noted(
    write: Any, run: Any, command: str
) -> None:
    write()
    write(run("plan", "clicks.py", "--format", "json").stdout, "saved.json")
    said = "note: saved.json is a saved plan, of one job as it was: ARGUMENTS, -D and --job change nothing"
    for given in (["--input", "x"], ["-D", "parallelism.default=2"], ["--job", "1"]):
        done = run(command, "saved.json", *given)
        assert (done.exit_code, said in done.stderr) == (0, True)
    assert run(command, "saved.json").stderr == ""


def test_option_set_changes_a_setting_of_an_operator(write: Any, run: Any) -> None:
    write(
        "from opchain.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1]).map(abs).uid('a.b').print()\n"
        "env.execute('j')\n"
    )
    assert "vertex 2  x5" in run("plan", "clicks.py", "--set", "a.b.parallelism=5").stdout
    wrong = run("plan", "clicks.py", "--set", "parallelism=5")
    assert "'parallelism=5' is not OPERATOR.SETTING=VALUE" in wrong.stderr


def test_a_short_option_after_an_argument_of_the_program_is_noted(write: Any, run: Any) -> None:
    write(PROGRAM)
    done = run("plan", "clicks.py", "one", "-o", "plan.html")
    assert done.exit_code == 0
    assert (
        "note: -o goes to the program, because it follows an argument of the program" in done.stderr
    )
    assert "goes to the program" not in run("plan", "clicks.py", "--", "one", "-o", "x").stderr
