"""Rules about imports between modules, checked in the source of every module."""

from __future__ import annotations

import ast
import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
MODULES = sorted(path for half in ("compiler", "runtime") for path in (ROOT / half).rglob("*.py"))
LAYERS = (
    "compiler/settings",
    "compiler/graph",
    "compiler/codegen",
    "compiler/passes",
    "compiler/plan",
    "compiler/interception",
    "compiler/ineffective_settings",
    "compiler/execution",
    "compiler/dsl",
    "compiler/table compiler/assertions",
    "compiler/command_line",
    "compiler/monitoring",
    "compiler/commands",
    "compiler/cli",
    "runtime/errors runtime/redaction runtime/time",
    "runtime/java_objects",
    "runtime/configuration",
    "runtime/types",
    "runtime/metrics",
    "runtime/functions",
    "runtime/windows runtime/watermarks runtime/files",
    "runtime/records runtime/mailbox",
    "runtime/formats runtime/columnar",
    "runtime/connectors",
    "runtime/state",
    "runtime/program",
    "runtime/operators runtime/measurements",
    "runtime/task",
    "runtime/checkpoint",
    "runtime/shipping",
    "runtime/epochs",
    "runtime/job",
    "runtime/reporting",
    "runtime/local runtime/spark",
    "runtime/testing",
)
"""Each half from the ground up. A module imports from its own layer's folder and from lower layers.

Imports under TYPE_CHECKING count: a reader follows them, too. Imports inside functions of the DSL may go up, since
`env.execute()` compiles and runs the program.
"""

LAYER_OF = {place: n for n, places in enumerate(LAYERS) for place in places.split()}

ALLOWED_AT_IMPORT = {
    "compiler": {"click", "mmh3", "networkx", "pydantic", "pydantic_core", "pytest", "rich"},
    "runtime": set[str](),
    "runtime/spark": {"pyspark", "py4j"},
}
"""Beyond the standard library and opchain itself; what is imported inside functions is free."""


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The tree of a module: several tests walk it."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, *, at_import_time: bool) -> Iterator[str]:
    """The full names that a module imports; those under TYPE_CHECKING left out."""
    work: list[ast.AST] = [parsed(path)]
    while work:
        node = work.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            work += node.orelse
            continue
        if at_import_time and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        work += ast.iter_child_nodes(node)


def half(path: Path) -> str:
    """The part of the project whose import rules apply to a module."""
    where = path.relative_to(ROOT).as_posix()
    return "runtime/spark" if where.startswith("runtime/spark/") else where.split("/")[0]


def test_runtime_and_compiler_import_only_allowed_packages() -> None:
    known = sys.stdlib_module_names | {"opchain"}
    foreign = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in MODULES
        for name in imports(path, at_import_time=True)
        if name.split(".")[0] not in known | ALLOWED_AT_IMPORT[half(path)]
    }
    assert not foreign


def test_the_runtime_never_imports_the_compiler() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in MODULES
        if half(path) != "compiler"
        and any(name.startswith("opchain.compiler") for name in imports(path, at_import_time=False))
    }
    assert not found


def test_pyspark_is_imported_in_one_folder() -> None:
    elsewhere = [
        path.relative_to(ROOT).as_posix()
        for path in MODULES
        if half(path) != "runtime/spark"
        and any(name.split(".")[0] == "pyspark" for name in imports(path, at_import_time=False))
    ]
    assert elsewhere == []


def test_drawing_needs_neither_networkx_nor_pydantic() -> None:
    heavy = {"networkx", "pydantic", "mmh3"}
    for path in sorted((ROOT / "compiler/dsl").rglob("*.py")):
        found = {name.split(".")[0] for name in imports(path, at_import_time=True)} & heavy
        assert not found, path


def place(name: str) -> str:
    """The folder or the module below compiler/ or runtime/ that holds a module."""
    return "/".join(name.split(".")[1:3])


def imported_by(path: Path) -> Iterator[str]:
    """The modules of opchain that a module imports, those for type checkers included."""
    inside_functions = path.is_relative_to(ROOT / "compiler/dsl")
    work: list[ast.AST] = [parsed(path)]
    while work:
        node = work.pop()
        if inside_functions and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            is_folder = (ROOT / node.module.replace("opchain.", "").replace(".", "/")).is_dir()
            names = (f"{node.module}.{name.name}" for name in node.names)
            yield from names if is_folder else [node.module]
        work += ast.iter_child_nodes(node)


def test_modules_import_only_from_lower_layers() -> None:
    upward = set()
    for path in MODULES:
        here = place(".".join(("opchain", *path.relative_to(ROOT).with_suffix("").parts)))
        if here.endswith("/__init__"):
            continue  # the package of a half
        upward |= {
            (here, name)
            for name in imported_by(path)
            if name.startswith((f"opchain.{here.split('/')[0]}.", "opchain.runtime."))
            and here.split("/")[0] == name.split(".")[1]
            and place(name) != here
            and LAYER_OF[place(name)] >= LAYER_OF[here]
        }
    assert not upward


def test_every_folder_is_assigned_to_a_layer() -> None:
    places = {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for half in ("compiler", "runtime")
        for path in (ROOT / half).iterdir()
        if path.name not in {"__init__.py", "__pycache__", "py.typed"}
    }
    assert places == LAYER_OF.keys()
