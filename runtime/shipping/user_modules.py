"""The modules that a program brings along: loaded, written in Python, and not installed.

Modules beside the program are not on the import path of another machine, though functions name them. These
are all loaded modules that come neither from Python itself, nor from an installed package, nor from
opchain; a package of which any module is loaded counts whole.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import ModuleType

_SELF = ("opchain", "__main__", "__mp_main__")
_INSTALLED = ("site-packages", "dist-packages")


def user_sources(modules: Mapping[str, ModuleType] | None = None) -> dict[str, Path]:
    """The files of the user's modules, by their place in an import root (`shop/prices.py`).

    Data files of packages are left out, as are extension modules, which cannot be imported from a zip.
    """
    loaded = dict(sys.modules if modules is None else modules)
    elsewhere = tuple(_folders_of_others())
    found: dict[str, Path] = {}
    for name, module in sorted(loaded.items()):
        file = _source_file(module)
        if file is None or name.partition(".")[0] in _SELF or _lies_below(file, elsewhere):
            continue
        if file.name == "__init__.py":
            found |= _package_files(name, file.parent)
        else:
            found[f"{name.replace('.', '/')}.py"] = file
    return found


def _package_files(name: str, folder: Path) -> dict[str, Path]:
    place = name.replace(".", "/")
    return {
        f"{place}/{file.relative_to(folder).as_posix()}": file
        for file in sorted(folder.rglob("*.py"))
        if "__pycache__" not in file.parts
    }


def _source_file(module: ModuleType) -> Path | None:
    """The module's .py file; None for built-in, compiled and namespace modules, and whatever else."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py") or not Path(file).is_file():
        return None
    return Path(os.path.realpath(file))


def _folders_of_others() -> Iterator[str]:
    """Where Python and what is installed lie."""
    folders = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += site.getsitepackages() if hasattr(site, "getsitepackages") else []
    folders.append(site.getusersitepackages())
    home = os.environ.get("SPARK_HOME")
    if home:
        folders.append(os.path.join(home, "python"))  # noqa: PTH118 - strings all the way
    for folder in folders:
        yield os.path.realpath(folder)


def _lies_below(file: Path, folders: Iterable[str]) -> bool:
    return any(part in _INSTALLED for part in file.parts) or str(file).startswith(
        tuple(folder + os.sep for folder in folders)
    )
