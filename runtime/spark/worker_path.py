"""What Python workers can import: opchain, and the modules beside the program.

On a local master with the driver's interpreter nothing is copied: workers get the driver's import path. Otherwise
`addPyFile` sends zips of opchain and of the program's modules to executors. The zips precede installed packages, so
driver and executors run the same opchain, whichever version the cluster has.

The program's modules are all loaded modules that belong neither to Python, nor to an installed package, nor to
opchain. If one module of a package is loaded, the whole package is sent.
"""

from __future__ import annotations

import os
import shutil
import site
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from opchain.runtime.spark.session import is_local
from opchain.runtime.spark.source_archive import archive_of, opchain_archive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import ModuleType

    from pyspark import SparkContext


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


_READERS_FOLDER = "streaming_job"
"""Where Spark 4 has the readers of streaming sources look, below the folder of its files."""

_added: WeakKeyDictionary[SparkContext, set[str]] = WeakKeyDictionary()


def provide_modules(context: SparkContext, python_executable: str | None) -> tuple[str, ...]:
    """Makes opchain and the program's modules importable for tasks; what tasks must add to their path.

    Args:
        context: Where the job will run.
        python_executable: The workers' interpreter, None for the context's.
    """
    if is_local(context) and _is_this_interpreter(python_executable or context.pythonExec):
        return tuple(dict.fromkeys(os.path.abspath(entry) for entry in sys.path))  # noqa: PTH100
    add_once(context, str(opchain_archive()), context.addPyFile)
    sources = user_sources()
    if sources:
        add_once(context, str(archive_of(sources, "program")), context.addPyFile)
    return ()


def provide_modules_for_readers() -> None:
    """Makes what tasks can import importable for the readers of Python streaming sources, too.

    These run in a process of their own beside the driver, by the executors' Python. Spark looks there for what was
    added by `addPyFile` in a folder that it does not fill.
    """
    from pyspark import SparkFiles  # noqa: PLC0415 - it may be missing

    root = Path(SparkFiles.getRootDirectory())
    folder = root / _READERS_FOLDER
    folder.mkdir(exist_ok=True)
    for file in root.iterdir():
        link = folder / file.name
        if file != folder and not link.is_symlink():
            link.symlink_to(file)


def add_once(context: SparkContext, path: str, add: Callable[[str], None]) -> None:
    """Adds a file to a context that doesn't have it; the driver's own import path stays as it is."""
    added = _added.setdefault(context, set())
    if path not in added:
        before = sys.path[:]
        add(path)
        sys.path[:] = before
        added.add(path)


def _is_this_interpreter(executable: str) -> bool:
    """Whether a command starts the Python that runs here.

    Compared as written, links and all: a virtual environment's python is a link to one without its packages.
    """
    found = shutil.which(executable)
    return found is not None and os.path.abspath(found) == os.path.abspath(sys.executable)  # noqa: PTH100
