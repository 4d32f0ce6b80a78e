from typing import Any

import click
import pytest

from opchain.compiler.cli import main
from opchain.compiler.commands.program_command import ProgramCommand

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
def test_an_option_that_is_nearly_our_own_is_mentioned_and_handed_on(
    write: Any, run: Any, command: str, given: str, meant: str
) -> None:
    write(PROGRAM)
    local = ["--local"] if command == "run" else []
    done = run(command, *local, "clicks.py", given)
    assert done.exit_code == 0
    name = given.partition("=")[0]
    assert f"note: {name} goes to the program; opchain's own option is {meant};" in done.stderr
    assert f"['{given}']" in done.stderr


def test_every_command_with_a_program_mentions_slips() -> None:
    def commands(group: click.Group) -> list[click.Command]:
        found = []
        for command in group.commands.values():
            found += commands(command) if isinstance(command, click.Group) else [command]
        return found

    for command in commands(main):
        takes_arguments = any(parameter.name == "arguments" for parameter in command.params)
        assert isinstance(command, ProgramCommand) == takes_arguments, command.name


def test_a_slip_is_mentioned_before_the_program_runs(write: Any, run: Any) -> None:
    write("raise SystemExit(3)\n")
    done = run("run", "clicks.py", "--locl")
    assert done.exit_code == 3
    assert "--locl goes to the program; opchain's own option is --local;" in done.stderr


def test_an_option_of_opchain_itself_stands_in_front_of_the_command(write: Any, run: Any) -> None:
    write(PROGRAM)
    done = run("plan", "clicks.py", "--traceback")
    assert "opchain's own stands in front of the command: opchain --traceback plan" in done.stderr


@pytest.mark.parametrize(
    "given",
    [
        ["--input", "--output-folder", "--to", "4"],
        ["locl", "-l", "-"],
        ["--", "--locl", "--job", "--traceback"],
    ],
)
def test_what_is_plainly_the_programs_is_not_mentioned(
    write: Any, run: Any, given: list[str]
) -> None:
    write(PROGRAM)
    done = run("plan", "clicks.py", *given)
    assert done.exit_code == 0
    assert "note:" not in done.stderr
    assert f"{[word for word in given if word != '--']}" in done.stderr
