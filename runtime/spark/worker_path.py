"""What Python workers can import: how opchain and the modules beside the program get there.

On a local master with this very interpreter nothing is copied: workers get the driver's import path. Else
zips of opchain and of the program's modules go to the executors by `addPyFile`. They precede what is
installed there, so that driver and executors run the same opchain, whichever the cluster has.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from opchain.runtime.shipping.user_modules import user_sources
from opchain.runtime.spark.session import is_local
from opchain.runtime.spark.source_archive import archive_of, opchain_archive

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import SparkContext

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
