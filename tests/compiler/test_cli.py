"""The command as users start it: real processes, and what `--help` says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from opchain.compiler.cli import main

PROGRAM = """
from opchain import StreamExecutionEnvironment
print("a line of the program")
env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 9).map(abs).name("übersetzen").filter(bool).print()
env.execute("clicks")
"""


def opchain(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "opchain", *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "clicks.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


def test_plan_prints_only_the_plan_to_standard_output(folder: Path) -> None:
    done = opchain(folder, "plan", "clicks.py", "--format", "json", PYTHONIOENCODING="utf-8")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["job_name"] == "clicks"
    assert done.stderr == "a line of the program\n"


def test_an_ascii_output_gets_ascii(folder: Path) -> None:
    done = opchain(folder, "plan", "clicks.py", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert r"-> \xfcbersetzen" in done.stdout


def test_the_traceback_of_an_operator_whose_name_no_file_can_have_is_shown(folder: Path) -> None:
    (folder / "clicks.py").write_text(PROGRAM.replace("bool", "ord"), encoding="utf-8")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = opchain(folder, "run", "--local", "--quiet", "clicks.py", **ascii_only)
    assert done.returncode == 1
    assert "During handling" not in done.stderr
    assert "TypeError: ord() expected string of length 1, but int found\n" in done.stderr


def test_diff_has_different_exit_codes_for_equal_different_and_error(folder: Path) -> None:
    changed = PROGRAM.replace(".filter(bool)", ".rebalance().filter(bool)")
    (folder / "other.py").write_text(changed, encoding="utf-8")
    codes = [
        opchain(folder, "diff", "clicks.py", other).returncode
        for other in ("clicks.py", "other.py", "missing.py")
    ]
    assert codes == [0, 1, 2]


def test_the_installed_script_is_the_same_command(folder: Path) -> None:
    script = Path(sys.executable).with_name("opchain")
    done = subprocess.run(
        [script, "key-groups", "hello"], capture_output=True, text=True, check=True
    )
    assert done.stdout == opchain(folder, "key-groups", "hello").stdout


def test_a_closed_output_pipe_is_not_an_error(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "opchain", "plan", "clicks.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_command_and_option_has_a_help_text(name: str) -> None:
    command = main.commands[name]
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help
    assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0


def test_all_commands_are_documented() -> None:
    looking = {"plan", "explain", "diff", "code", "key-groups", "lint", "port", "state", "config"}
    running = {"run", "submit", "package", "checkpoint", "savepoint", "replay", "dev", "new"}
    operating = {"cancel", "stop"}
    assert set(main.commands) == looking | running | operating
    assert "opchain, version" in CliRunner().invoke(main, ["--version"]).output


def test_an_unknown_command_is_an_error() -> None:
    assert CliRunner().invoke(main, ["plans"]).exit_code == 2


@pytest.mark.parametrize("group", [(), ("checkpoint",)])
def test_the_short_help_of_every_command_is_a_whole_sentence(group: tuple[str, ...]) -> None:
    listed = CliRunner().invoke(main, [*group, "--help"], terminal_width=80).output
    _, _, commands = listed.partition("\nCommands:\n")
    lines = commands.partition("\n\n")[0].split("\n")
    assert [line for line in lines if not line.endswith(".")] == []
    assert [line for line in lines if line.endswith("...")] == []
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", [["plan"], ["diff", "clicks.py"], ["run"]])
def test_an_interrupt_exits_with_130(folder: Path, command: list[str]) -> None:
    (folder / "endless.py").write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    done = opchain(folder, *command, "endless.py")
    assert done.returncode == 130
    assert done.stderr.endswith("opchain: interrupted\n")
