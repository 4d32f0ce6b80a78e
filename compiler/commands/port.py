"""`opchain port`: rewrites the imports of a PyFlink program for opchain."""

from __future__ import annotations

import ast
import importlib
import tokenize
import warnings
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from opchain.compiler.command_line.output import examples
from opchain.compiler.command_line.program_file import existing_file
from opchain.reexports import is_refused

if TYPE_CHECKING:
    from collections.abc import Iterator


class Finding(NamedTuple):
    """An import that the user should check."""

    line: int
    text: str


@click.command(epilog=examples("opchain port job.py", "opchain port --write job.py"))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-w", "--write", is_flag=True, help="Rewrite the file in place.")
def port(file: Path, write: bool) -> None:
    """Rewrites a PyFlink program's imports from pyflink to opchain.

    Prints the rewritten program, or writes it back with --write. Imports that would not resolve, names that
    opchain refuses, and spellings of PyFlink 1 are listed on standard error. Exit codes: 0 all imports
    resolve; 1 some don't; 2 the file is not a Python program.
    """
    source = existing_file(file).read_bytes()
    try:
        tree = ast.parse(source, str(file))
    except SyntaxError as error:
        raise click.UsageError(f"{file}:{error.lineno}: {error.msg}") from None
    encoding, _ = tokenize.detect_encoding(BytesIO(source).readline)
    ported = ported_text(source.decode(encoding))
    if write:
        file.write_bytes(ported.encode(encoding))
    else:
        click.echo(ported, nl=False)
    unresolved, remarks = findings(tree)
    for finding in sorted(unresolved + remarks):
        click.echo(f"{file}:{finding.line}: {finding.text}", err=True)
    if unresolved:
        raise SystemExit(1)


def ported_text(text: str) -> str:
    """The program with the name `pyflink` replaced by `opchain` in code, but not in strings and comments."""
    lines = text.splitlines(keepends=True)
    for token in reversed(list(tokenize.generate_tokens(iter(lines).__next__))):
        if token.type == tokenize.NAME and token.string == "pyflink":
            row, column = token.start[0] - 1, token.start[1]
            line = lines[row]
            lines[row] = line[:column] + "opchain" + line[column + len("pyflink") :]
    return "".join(lines)


def findings(tree: ast.AST) -> tuple[list[Finding], list[Finding]]:
    """The imports that do not resolve, and remarks on those that do."""
    unresolved: list[Finding] = []
    remarks: list[Finding] = []
    for line, module, name in _imports(tree):
        shown = f"{module}.{name}" if name else module
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = importlib.import_module(module)
                value = getattr(found, name) if name and name != "*" else found
            except (ImportError, AttributeError):
                try:
                    importlib.import_module(shown)
                except ImportError:
                    unresolved.append(Finding(line, f"{shown} does not exist"))
                continue
        remarks += [Finding(line, str(w.message)) for w in caught]
        if is_refused(value):
            remarks.append(
                Finding(line, f"{shown} can be imported, and is refused where it is used")
            )
    return unresolved, remarks


def _imports(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and _is_pyflink(node.module or ""):
            for alias in node.names:
                yield node.lineno, _opchain(node.module or ""), alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _is_pyflink(alias.name):
                    yield node.lineno, _opchain(alias.name), ""


def _is_pyflink(module: str) -> bool:
    return module.partition(".")[0] == "pyflink"


def _opchain(module: str) -> str:
    return "opchain" + module.removeprefix("pyflink")


COMMANDS = (port,)
