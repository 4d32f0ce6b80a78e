"""Shared by all commands: errors, the end of options, examples, completion and settings; and the command `new`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from opchain.compiler.cli import main
from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.command_line.program_command import module_file

SHOWS_ARGUMENTS = """
import sys
from opchain import StreamExecutionEnvironment

environment = StreamExecutionEnvironment.get_execution_environment()
environment.from_collection([1]).name(" ".join(sys.argv[1:]) or "nothing").print()
environment.execute()
"""


def commands(group: click.Group = main, path: str = "") -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name, command in group.commands.items():
        full = f"{path} {name}".strip()
        found |= commands(command, full) if isinstance(command, click.Group) else {full: command}
    return found


def test_every_command_has_two_valid_examples_in_its_help() -> None:
    for path, command in commands().items():
        title, *lines = str(command.epilog).removeprefix("\b\n").splitlines()
        assert (title, len(lines)) == ("Examples:", 2)
        for line in lines:
            words = line.split()
            assert words[: 1 + len(path.split())] == ["opchain", *path.split()]
            options = {
                name
                for each in command.params
                if isinstance(each, click.Option)
                for name in each.opts
            }
            given = [word for word in words if word.startswith("-")]
            own = given if path != "run" else [word for word in given if word != "--input"]
            assert not set(own) - options - {"-m"}, line


@pytest.mark.parametrize("path", ["", "checkpoint", "config", "dev"])
def test_groups_of_commands_have_two_examples(run: Any, path: str) -> None:
    lines = run(*path.split(), "--help").stdout.partition("Examples:\n")[2].splitlines()
    assert len(lines) == 2
    assert all(
        line.split()[: 1 + len(path.split())] == ["opchain", *path.split()] for line in lines
    )


def test_new_quotes_the_folder_in_the_commands_that_it_prints(run: Any, tmp_path: Path) -> None:
    made = run("new", tmp_path / "my shop")
    assert f"cd '{tmp_path / 'my shop'}'" in made.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plna", "x.py"], "opchain: there is no command plna; did you mean plan?"),
        (["plan"], "opchain plan: missing argument 'FILE'"),
        (
            ["state", "x", "--operater", "o"],
            "there is no option --operater; did you mean --operator?",
        ),
        (["plan", "clicks.py", "-o"], "'-o' requires an argument; 'opchain plan --help'"),
        (["submit", "--master"], "'--master' requires an argument; 'opchain submit --help'"),
        (
            ["checkpoint", "diff", "x", "clicks.py", "-D"],
            "'-D' requires an argument; 'opchain checkpoint diff --help'",
        ),
        (["run", "-m"], "opchain run: option '-m' requires an argument; 'opchain run --help'"),
        (["plan", "--fromat", "json", "clicks.py"], "--fromat is not an option of this command"),
        (["plan", "--fromat", "json", "clicks.py"], "did you mean --format?"),
        (["plan", "clicks.py", "--format", "jsn"], "opchain plan: invalid value for '--format'"),
        (
            ["plan", "clicks.py", "-D", "paralelism.default=2"],
            "did you mean 'parallelism.default'?",
        ),
        (["plan", "clicks.py", "-D", "x.y=2"], "configuration key 'x.y' is unknown"),
        (
            ["plan", "clicks.py", "-D", "state.backend.tpye=rocksdb"],
            "did you mean 'state.backend.type'?",
        ),
        (
            ["checkpoint", "sho", "x"],
            "there is no command sho; did you mean show? 'opchain checkpoint",
        ),
        (["run", "clicks.py", "--serve", "abc"], "'abc' is not a whole number; 'opchain run"),
        (["run", "clicks.py", "--serve", "70000"], "70000 is not in the range 0 to 65535;"),
        (["plan", "click.py"], "there is no file click.py; did you mean clicks.py?"),
        (
            ["config", "ls", "parallelizm"],
            "did you mean 'parallelism'? 'opchain config ls' without",
        ),
        (["config", "ls", "nothing.like"], "no setting matches 'nothing.like'"),
        (["run", "clicks.py", "--progress-log", "no/where.json"], "there is no folder no"),
    ],
)
def test_errors_of_the_command_line_have_the_same_form(
    arguments: list[str], said: str, write: Any, run: Any
) -> None:
    write()
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert f"opchain {' '.join(arguments)}".startswith(line.partition(":")[0])
    assert "opchain: opchain" not in line
    assert said in line


def test_flink_keys_without_effect_are_ignored_with_a_note(write: Any, run: Any) -> None:
    write()
    done = run("plan", "clicks.py", "-D", "taskmanager.memory.process.size=4g")
    assert done.exit_code == 0
    assert done.stderr == (
        "opchain: note: taskmanager.memory.process.size is ignored (it has no counterpart here)\n"
    )


def test_a_misspelt_key_in_the_program_is_refused(write: Any, run: Any) -> None:
    write(
        SHOWS_ARGUMENTS.replace(
            "environment =",
            "from opchain import Configuration\n"
            "configuration = Configuration()\n"
            "configuration.set_string('my.own.key', 'x')\n"
            "configuration.set_string(KEY, '2')\n"
            "environment =",
        )
        .replace("get_execution_environment()", "get_execution_environment(configuration)")
        .replace("KEY", "'paralelism.default'")
    )
    done = run("plan", "clicks.py")
    assert done.exit_code == 2
    assert "'paralelism.default' is unknown; did you mean 'parallelism.default'?" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "programs"),
    [
        (["clicks.py", "--format", "text", "one", "--format", "two"], "one --format two"),
        (["clicks.py", "--input", "x", "--job", "7"], "--input x --job 7"),
        (["clicks.py", "--", "--format", "nice"], "--format nice"),
        (["--format", "text", "clicks.py", "-v", "-D", "x"], "-v -D x"),
        (["--format=text", "-Dparallelism.default=1", "clicks.py"], "nothing"),
    ],
)
def test_options_after_the_first_argument_belong_to_the_program(
    arguments: list[str], programs: str, write: Any, run: Any
) -> None:
    write(SHOWS_ARGUMENTS)
    done = run("plan", *arguments)
    assert done.exit_code == 0, done.stderr
    assert f"Source: {programs}" in done.stdout or programs in done.stdout


@pytest.fixture
def package(write: Any) -> None:
    write("", "shop/__init__.py")
    write("", "shop/jobs/__init__.py")
    write("NAME = 'of the package'\n", "shop/common.py")
    text = SHOWS_ARGUMENTS.replace(
        "import sys",
        "import sys\nfrom ..common import NAME\nfrom shop.common import NAME as SAME\nassert __package__ == 'shop.jobs'",
    )
    write(text.replace('"nothing"', "NAME"), "shop/jobs/totals.py")
    write("import shop.jobs.totals\n", "shop/__main__.py")


@pytest.mark.parametrize(
    "file", [["-m", "shop.jobs.totals"], ["shop/jobs/totals.py"], ["-m", "shop"]], ids=" ".join
)
def test_a_module_of_a_package_can_be_run_as_a_program(
    file: list[str], package: None, run: Any
) -> None:
    done = run("plan", *file)
    assert done.exit_code == 0, done.stderr
    assert "of the package" in done.stdout
    assert "shop" not in sys.modules
    ran = run("run", "--local", "--quiet", *file)
    assert ran.exit_code == 0, ran.stderr
    wrong = run("plan", "-m", "shop.jobs.nothing")
    assert wrong.exit_code == 2
    assert "there is no module shop.jobs.nothing" in wrong.stderr


def test_a_module_is_found_without_importing_it(package: None) -> None:
    assert module_file("shop.jobs.totals") == Path.cwd() / "shop/jobs/totals.py"
    with pytest.raises(CommandError, match=r"there is no module shop\.common\.nothing"):
        module_file("shop.common.nothing")
    for name in ("shp.jobs.totals", "shop.job.totals", "shop.jobs.total"):
        with pytest.raises(CommandError, match=r"; did you mean shop\.jobs\.totals\?$"):
            module_file(name)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("plan.html", "<!doctype html>"),
        ("plan.json", "{"),
        ("plan.dot", "digraph"),
        ("plan.txt", "job"),
    ],
)
def test_the_suffix_of_the_output_file_sets_its_format(
    name: str, begins: str, write: Any, run: Any
) -> None:
    write()
    assert run("plan", "clicks.py", "-o", name).exit_code == 0
    assert Path(name).read_text("utf-8").lower().startswith(begins)


def test_config_ls_lists_settings(run: Any) -> None:
    every = run("config", "ls").stdout
    assert "parallelism.default" in every
    assert "execution.target\n        spark | local, default spark\n" in every
    some = run("config", "ls", "state.backend.*").stdout
    assert [line for line in some.splitlines() if not line.startswith(" ")] == [
        "state.backend.type",
        "state.backend.rocksdb.localdir",
    ]
    assert "opchain.streaming.progress-log" in run("config", "ls", "line of JSON").stdout


@pytest.mark.parametrize(
    ("words", "completes"),
    [
        ("opchain plan -D execution.checkpointing.d", "execution.checkpointing.dir="),
        ("opchain conf", "config"),
        ("opchain plan --sta", "--stage"),
    ],
)
def test_a_shell_completes_commands_options_and_keys(words: str, completes: str) -> None:
    environment = {
        **os.environ,
        "_OPCHAIN_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    script = "from opchain.compiler.cli import main; main(prog_name='opchain')"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert f"plain,{completes}" in done.stdout.splitlines(), done.stderr


@pytest.mark.slow
def test_new_creates_a_project_that_runs(tmp_path: Path, run: Any, monkeypatch: Any) -> None:
    folder = tmp_path / "shop"
    made = run("new", folder)
    assert made.exit_code == 0
    monkeypatch.chdir(folder)
    ran = subprocess.run(
        [sys.executable, "-m", "opchain", "run", "--local", "--quiet", "job.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert (
        sorted(ran.stdout.splitlines())
        == [*("('Berlin', 2)", "('Berlin', 7)", "('Paris', 1)", "('Rome', 4)")]
        or "(Berlin,7)" in ran.stdout
    )
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in tested.stdout, tested.stdout
    assert "opchain run --local job.py" in Path("README.md").read_text("utf-8")
    again = run("new", folder)
    assert again.exit_code == 2
    assert "is not an empty folder" in again.stderr
