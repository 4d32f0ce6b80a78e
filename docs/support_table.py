"""Prints the README's tables of what is supported, from the code itself.

    python docs/support_table.py

The first has PyFlink's modules: how many of their names are there, and which of these only say that they
are not supported: names that are refused where they are used, and methods that do nothing but raise. (That every name of
PyFlink 2.3 is there, with its parameters, tests/test_pyflink_names.py shows.) The second has the
kinds of operators that run. tests/test_readme.py compares the README with this.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from typing import TYPE_CHECKING, Any

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
    """The modules that PyFlink has too; a package that only repeats its modules' names is left out."""
    for package in PACKAGES:
        found = importlib.import_module(package)
        below = [
            module
            for module in pkgutil.walk_packages(found.__path__, f"{package}.")
            if not module.ispkg
        ]
        yield from (module.name for module in below) if below else (package,)


def api() -> Iterator[tuple[str, int, list[str]]]:
    """Module, how many names it has, and what of them is refused."""
    for module in modules():
        loaded = importlib.import_module(module)
        names = sorted(getattr(loaded, "__all__", ()))
        if not names and module.startswith("opchain.datastream.connectors."):
            place = module.removeprefix("opchain.")
            names = sorted(name for name, owner in names_of(place).items() if owner == place)
        if names:
            yield module, len(names), [item for name in names for item in refused(loaded, name)]


def refused(module: Any, name: str) -> list[str]:
    """The name, if it cannot be had; else the methods of the class that only raise."""
    owner = getattr(module, name)
    if is_refused(owner):
        return [name]
    if not inspect.isclass(owner):
        return []
    found = [
        name if member == "__init__" else f"{name}.{member}"
        for member, value in vars(owner).items()
        if (member == "__init__" or not member.startswith("_")) and only_raises(value)
    ]
    return [item for item in found if item not in REFUSED_BY_FLINK]


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
    """The kinds of operators that run, and what they are: the first sentence of their specs."""
    found = []
    for _, spec in inspect.getmembers(specs, inspect.isclass):
        if not issubclass(spec, specs.OperatorSpec) or spec.kind in INTERNAL:
            continue
        if spec in OPERATORS:
            about = (inspect.getdoc(spec) or "").split("\n\n")[0].replace("\n", " ").rstrip(".:")
            found.append((spec.kind, about))
    return sorted(found)


def api_table() -> str:
    """PyFlink's API in Markdown."""
    lines = ["| module of PyFlink | names | not supported |", "|---|---|---|"]
    for module, count, missing in api():
        listed = ", ".join(f"`{item}`" for item in missing)
        told = "all" if len(missing) == count else listed
        name = module.replace("opchain", "pyflink", 1)
        lines.append(f"| `{name}` | {count} | {told} |")
    return "\n".join(lines)


def operator_table() -> str:
    """The operators in Markdown."""
    lines = ["| operator | what it is |", "|---|---|"]
    lines += [f"| `{kind}` | {about} |" for kind, about in operators()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(api_table())
    print()
    print(operator_table())
