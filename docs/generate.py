"""Write the generated pages of the reference.

    python docs/generate.py

Each page in docs/reference that this script writes says so in its first line. tests/docs/test_generated.py
fails if a page differs from what the code says now.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import click

import opchain
from opchain.compiler import cli
from opchain.compiler.settings.settings_reader import setting_rows
from opchain.reexports import is_refused, names_of
from opchain.runtime.operators.registry import OPERATORS
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = ("opchain.common", "opchain.datastream", "opchain.metrics", "opchain.table")
INTERNAL = {"operator", "sink", "map_partition"}
REFUSED_BY_FLINK = {
    f"KeyedStream.{name}"
    for name in (
        *("shuffle", "rebalance", "rescale", "forward", "global_", "broadcast"),
        "partition_custom",
    )
}
"""Keyed streams are partitioned already: Flink refuses these as well."""


def modules() -> Iterator[str]:
    """PyFlink's modules. A package that only re-exports the names of its modules is left out."""
    for package in PACKAGES:
        found = importlib.import_module(package)
        below = [
            module
            for module in pkgutil.walk_packages(found.__path__, f"{package}.")
            if not module.ispkg
        ]
        yield from (module.name for module in below) if below else (package,)


def api() -> Iterator[tuple[str, int, list[str]]]:
    """Each module, its number of names, and the names that are refused."""
    for module in modules():
        loaded = importlib.import_module(module)
        names = sorted(getattr(loaded, "__all__", ()))
        if not names and module.startswith("opchain.datastream.connectors."):
            place = module.removeprefix("opchain.")
            names = sorted(name for name, owner in names_of(place).items() if owner == place)
        if names:
            yield module, len(names), [item for name in names for item in refused(loaded, name)]


def refused(module: Any, name: str) -> list[str]:
    """The name, if its import is refused; else the methods that only raise, of the class and of classes inside it."""
    owner = getattr(module, name)
    if is_refused(owner):
        return [name]
    if not inspect.isclass(owner):
        return []
    return [item for item in refused_methods(owner, name) if item not in REFUSED_BY_FLINK]


def refused_methods(owner: type, name: str) -> Iterator[str]:
    """The methods that only raise, of a class and of the classes that are defined in it."""
    for member, value in vars(owner).items():
        if inspect.isclass(value) and value.__qualname__ == f"{owner.__qualname__}.{member}":
            yield from refused_methods(value, f"{name}.{member}")
        elif (member == "__init__" or not member.startswith("_")) and only_raises(value):
            yield name if member == "__init__" else f"{name}.{member}"


def only_raises(member: Any) -> bool:
    """Whether a method does nothing but raise UnsupportedFeatureError, through `no_java` for one."""
    function = getattr(member, "__func__", member)
    if not inspect.isfunction(function) or function.__code__.co_filename.startswith("<"):
        return False  # a dataclass's own have no source
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef)
    body = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    if len(body) != 1 or not isinstance(body[0], ast.Raise):
        return False
    raised = ast.unparse(body[0])
    return "no_java(" in raised or "UnsupportedFeatureError(" in raised


def operators() -> list[tuple[str, str]]:
    """The kinds of operators, each with the first sentence of its spec."""
    found = []
    for _, spec in inspect.getmembers(specs, inspect.isclass):
        if not issubclass(spec, specs.OperatorSpec) or spec.kind in INTERNAL:
            continue
        if spec in OPERATORS:
            about = (inspect.getdoc(spec) or "").split("\n\n")[0].replace("\n", " ").rstrip(".:")
            found.append((spec.kind, about))
    return sorted(found)


def api_table() -> str:
    """PyFlink's modules, as a Markdown table."""
    lines = ["| module of PyFlink | names | not supported |", "|---|---|---|"]
    for module, count, missing in api():
        listed = ", ".join(f"`{item}`" for item in missing)
        unsupported = "all" if len(missing) == count else listed
        name = module.replace("opchain", "pyflink", 1)
        lines.append(f"| `{name}` | {count} | {unsupported} |")
    return "\n".join(lines)


def operator_table() -> str:
    """The operators, as a Markdown table."""
    lines = ["| operator | what it is |", "|---|---|"]
    lines += [f"| `{kind}` | {about} |" for kind, about in operators()]
    return "\n".join(lines)


def support_page() -> str:
    """What runs, and what is refused."""
    return f"""# Support table

Every public name of PyFlink 2.3's DataStream API is there, with its parameters. A feature that is not supported raises an
`UnsupportedFeatureError` that names it. Bounded jobs run in BATCH and STREAMING mode, on Spark and in process. Unbounded jobs
run on Structured Streaming and in process, with checkpoints.

Not supported: the Table API beyond [tables as connectors, SQL, expressions, windows, groups, joins, scalar and table functions](../how-to/tables.md); queryable state; `SourceFunction`s and sources
inside multi-input operators in unbounded jobs on Spark.

## PyFlink's modules

{api_table()}

## Operators

{operator_table()}
"""


def settings_page() -> str:
    """Every configuration key that has an effect."""
    rows = ["| key | values | default | effect |", "|---|---|---|---|"]
    for row in setting_rows():
        values = ", ".join(f"`{value}`" if row.is_choice else value for value in row.values)
        default = f"`{row.default}`" if row.default else ""
        rows.append(f"| `{row.key}` | {values} | {default} | {row.description} |")
    table = "\n".join(rows)
    return f"""# Settings

Set a key with `Configuration.set_string`, with `opchain run -D KEY=VALUE`, or with the environment's setter, if Flink
has one. A misspelt key and a value of the wrong type are refused before the program runs; the error names the nearest
key. Durations are written as in Flink: `500 ms`, `10 s`, `5 min`. `opchain config ls PATTERN` shows this table in a terminal.

{table}

Other keys of Flink are accepted and have no effect, and a warning says so. Examples are keys of the memory and the network
of a Flink cluster. A program may store other keys in a `Configuration`. `-D` takes only keys of opchain and Flink.
"""


def commands_page() -> str:
    """The help of each command."""
    texts = [
        "# Commands\n",
        (
            "A command that takes FILE also takes `-m package.module`, a module. Options after `--`, or after the first "
            "argument of the program, go to\nthe program.\n"
        ),
        (
            "A shell completes commands, options and configuration keys. Add this to `~/.bashrc`, or the same with `zsh_source` "
            "to `~/.zshrc`:\n"
        ),
        '```text\neval "$(_OPCHAIN_COMPLETE=bash_source opchain)"\n```\n',
    ]
    texts.extend(_help(cli.main, "opchain", None))
    return "\n".join(texts)


def _help(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(
        command,
        info_name=name.rpartition(" ")[2],
        parent=parent,
        **command.context_settings,
    )
    context.max_content_width = context.terminal_width = 90
    text = command.get_help(context).rstrip()
    yield f"## {name}\n\n```text\n{text}\n```\n"
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            assert found is not None
            yield from _help(found, f"{name} {sub}", context)


WHAT_TO_DO = "What to do: "

NEVER_SEEN = {"InputRestoredError"}
"""Errors that the driver always catches itself."""


@cache
def error_classes() -> list[tuple[str, str, str, str]]:
    """Name, module, parent and docstring of each error that users can see, read from the source of every module."""
    classes = {
        node.name: (path, [ast.unparse(parent) for parent in node.bases], node)
        for half in ("compiler", "runtime")
        for path in sorted((ROOT / half).rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    found, new = set(), {"StreamError"}
    while new:
        found |= new
        new = {name for name, (_, parents, _) in classes.items() if found & {*parents}} - found
    listed = []
    for name in sorted(found - NEVER_SEEN):
        path, parents, node = classes[name]
        place = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        module = "opchain" if name in opchain.__all__ else f"opchain.{place}"
        listed.append((name, module, parents[0], ast.get_docstring(node) or ""))
    return listed


def errors_page() -> str:
    """Each exception: when it is raised, and what to do."""
    sections = []
    for name, module, parent, text in error_classes():
        paragraphs = [paragraph.replace("\n", " ") for paragraph in text.split("\n\n")]
        advice = next(line for line in paragraphs if line.startswith(WHAT_TO_DO))
        kind = f"Kind of `{parent}`. " if name != "StreamError" else ""
        sections.append(
            f"## {name}\n\n{paragraphs[0]}\n\n"
            f"**What to do:** {advice.removeprefix(WHAT_TO_DO)}\n\n"
            f"{kind}Import: `from {module} import {name}`.\n"
        )
    listed = "\n".join(sections)
    return f"""# Errors

Every exception that opchain raises on purpose is a `StreamError`. Wrong arguments of a single call raise `TypeError` or
`ValueError`. An exception in your own function keeps its type; a note on it names the operator, the line of the program
that created the operator, and the record.

A message says what failed and where, what was found and what was expected, and what to do. This page lists the kinds of
errors, by name.

{listed}"""


PAGES = {
    "support.md": support_page,
    "settings.md": settings_page,
    "commands.md": commands_page,
    "errors.md": errors_page,
}


def render(name: str) -> str:
    """A page as its file holds it."""
    return f"<!-- Generated by docs/generate.py: do not edit. -->\n\n{PAGES[name]()}"


if __name__ == "__main__":
    for page in PAGES:
        (ROOT / "docs" / "reference" / page).write_text(render(page), encoding="utf-8")
