"""`opchain port` rewrites imports and lists those that do not resolve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.testing import CliRunner

from opchain.compiler.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

PROGRAM = '''"""A program for pyflink."""
import pyflink.datastream.window as windows  # of pyflink
from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment, TimeCharacteristic
from pyflink.table import SqlDialect
import pyflink.version

TEXT = "pyflink stays in texts"
env = StreamExecutionEnvironment.get_execution_environment()
version = pyflink.version.__version__
'''


def port(path: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["port", str(path), *options])


def test_port_rewrites_imports_but_not_strings(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(PROGRAM)
    done = port(program)
    assert done.exit_code == 0
    assert done.stdout == (
        PROGRAM.replace("import pyflink", "import opchain")
        .replace("from pyflink.", "from opchain.")
        .replace("version = pyflink", "version = opchain")
        .replace("# of opchain", "# of pyflink")
    )
    assert program.read_text() == PROGRAM
    remarks = done.stderr.splitlines()
    assert len(remarks) == 2
    assert f"{program}:4: opchain.datastream.TimeCharacteristic is of PyFlink 1" in remarks[0]
    assert "job.py:5: opchain.table.SqlDialect can be imported, and is" in remarks[1]


def test_port_can_rewrite_the_file_in_place(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_bytes(b"# coding: latin-1\nfrom pyflink.common import Row  # \xe9\n")
    assert port(program, "--write").exit_code == 0
    assert program.read_bytes() == b"# coding: latin-1\nfrom opchain.common import Row  # \xe9\n"


def test_port_lists_imports_that_do_not_resolve(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(
        "from pyflink.datastream import DataStream, Stream\n"
        "import pyflink.cep\n"
        "from pyflink.datastream import window, functions\n"
    )
    done = port(program)
    assert done.exit_code == 1
    assert done.stderr.splitlines() == [
        f"{program}:1: opchain.datastream.Stream does not exist",
        f"{program}:2: opchain.cep does not exist",
    ]


def test_port_refuses_a_file_with_a_syntax_error(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text("def broken(:\n")
    done = port(program)
    assert done.exit_code == 2
    assert "job.py:1: invalid syntax" in done.stderr


def test_port_names_a_missing_file_as_other_commands_do(tmp_path: Path) -> None:
    done = port(tmp_path / "job.py")
    assert done.exit_code == 2
    assert f"there is no file {tmp_path / 'job.py'}" in done.output
