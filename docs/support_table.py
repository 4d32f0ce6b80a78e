"""Prints the README's table of what is supported, from the code itself.

    python docs/support_table.py

Every kind of operator that the DSL draws compiles; a kind runs if the runtime's registry has a class
for it. tests/test_readme.py compares the README with this.
"""

from __future__ import annotations

import inspect

from opchain.runtime.operators import specs
from opchain.runtime.operators.registry import OPERATORS

INTERNAL = {"operator", "sink", "map_partition"}


def rows() -> list[tuple[str, str, bool]]:
    """Kind, what it is (the first sentence of its spec), and whether bounded jobs run it."""
    found = []
    for _, spec in inspect.getmembers(specs, inspect.isclass):
        if not issubclass(spec, specs.OperatorSpec) or spec.kind in INTERNAL:
            continue
        about = (inspect.getdoc(spec) or "").split("\n\n")[0].replace("\n", " ").rstrip(".:")
        found.append((spec.kind, about, spec in OPERATORS))
    return sorted(found)


def table() -> str:
    """The table in Markdown."""
    lines = ["| operator | what it is | compiles | bounded jobs |", "|---|---|---|---|"]
    lines += [
        f"| `{kind}` | {about} | yes | {'yes' if runs else 'not yet'} |"
        for kind, about, runs in rows()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
