"""The modules beside a program, found without running it.

What a running program has loaded travels by itself (runtime.user_modules). In cluster mode the driver is on
another machine, and spark-submit must bring along what the program will import.
"""

from __future__ import annotations

from modulefinder import ModuleFinder
from pathlib import Path


def modules_beside(program: Path) -> dict[str, bytes]:
    """The sources that a program imports from its own folder, by their places in an import root.

    A package of which any module is imported comes whole, without its data files. Imports by a computed name
    are not seen.
    """
    folder = program.resolve().parent
    finder = ModuleFinder(path=[str(folder)])
    finder.run_script(str(program))
    found: dict[str, bytes] = {}
    for name, module in sorted(finder.modules.items()):
        path: str | None = getattr(module, "__file__", None)
        if name == "__main__" or path is None:
            continue
        top_level = folder / name.partition(".")[0]
        files = sorted(top_level.rglob("*.py")) if top_level.is_dir() else [Path(path)]
        for file in files:
            found[file.relative_to(folder).as_posix()] = file.read_bytes()
    return found
