"""Records the modules of PyFlink with their names and signatures.

Run it with the Python of an environment that holds PyFlink 2.3, in the root of the project:

    python tests/record_pyflink_names.py

It writes opchain/pyflink_names.py, which opchain resolves names by, and tests/pyflink_signatures.txt, which
tests/test_pyflink_names.py compares.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import typing
import warnings
from pathlib import Path

if typing.TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[1]
LEFT_OUT = ("fn_execution", "examples", "proto", "testing", "bin", "lib", "table.tests")
TOOLS = (
    *("gen_protos", "pyflink_gateway_server", "pyflink_callback_server", "shell"),
    "find_flink_home",
)
"""Modules that PyFlink runs as processes of its own, and its own helpers."""

HEAD = '''"""The modules of PyFlink 2.3 and their names. Written by tests/record_pyflink_names.py.

A module is listed in brackets. Each line is `defining module: names`. The defining module `.` is the listed module
itself; `typing` means type variables.
"""

NAMES = """
'''


def recorded_modules() -> dict[str, ModuleType]:
    package = importlib.import_module("pyflink")
    found = {}
    for module in pkgutil.walk_packages(package.__path__, "pyflink."):
        name = module.name.removeprefix("pyflink.")
        if name not in TOOLS and not name.startswith(LEFT_OUT) and ".tests" not in name:
            found[name] = importlib.import_module(module.name)
    return found


def owner_of(module: ModuleType, value: object) -> str | None:
    """The module of PyFlink that defines a value; None for what comes from elsewhere."""
    if isinstance(value, typing.TypeVar):
        return "typing"
    if inspect.isclass(value) or inspect.isfunction(value):
        owner = value.__module__
        if not owner.startswith("pyflink.") or owner.startswith("pyflink.fn_execution"):
            return None
        if owner.removeprefix("pyflink.") in TOOLS:
            return None
        return "." if owner == module.__name__ else owner.removeprefix("pyflink.")
    is_constant = isinstance(value, str | int | float | bytes) and not isinstance(value, bool)
    is_instance = type(value).__module__.startswith("pyflink")
    return "." if is_constant or is_instance else None


def parameters(function: object) -> str:
    """The parameters of a function as `a, b?, *c, **d`; `?` marks one that a call may leave out."""
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "..."
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return ", ".join(
        marks.get(p.kind, "") + p.name + ("" if p.default is p.empty else "?")
        for p in signature.parameters.values()
    )


def members(owner: type, prefix: str) -> typing.Iterator[str]:
    """A class and what it has by itself, one line each."""
    yield prefix
    for name, member in sorted(vars(owner).items()):
        if name.startswith("_") and name != "__init__":
            continue
        found = getattr(owner, name)
        if inspect.isclass(found) and found.__qualname__.startswith(owner.__qualname__):
            yield from members(found, f"{prefix}.{name}")
        elif isinstance(member, property) or not callable(found):
            yield f"{prefix}.{name}"
        else:
            yield f"{prefix}.{name}({parameters(found)})"


def main() -> None:
    warnings.simplefilter("ignore")
    names, signatures = [], []
    for name, module in recorded_modules().items():
        owners: dict[str, list[str]] = {}
        signatures.append(f"[{name}]")
        for key, value in sorted(vars(module).items()):
            if key.startswith("_") or (owner := owner_of(module, value)) is None:
                continue
            owners.setdefault(owner, []).append(key)
            if owner == "." and inspect.isclass(value):
                signatures += members(value, key)
            elif owner == ".":
                signatures.append(
                    f"{key}({parameters(value)})" if inspect.isfunction(value) else key
                )
        names.append(f"[{name}]")
        names += [f"{owner}: {' '.join(keys)}" for owner, keys in sorted(owners.items())]
    (ROOT / "opchain/pyflink_names.py").write_text(HEAD + "\n".join(names) + '\n"""\n')
    (ROOT / "tests/pyflink_signatures.txt").write_text("\n".join(signatures) + "\n")


if __name__ == "__main__":
    main()
