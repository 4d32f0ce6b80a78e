"""Dependencies of a job that runs in this process: what Spark would copy to executors lies here already."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opchain.runtime.job.dependencies import JobDependencies, PythonArchive


@contextmanager
def local_files(dependencies: JobDependencies) -> Iterator[Mapping[str, Path]]:
    """The cached files and the unpacked archives by name; Python files can be imported meanwhile.

    The interpreter and what is installed in it are this process's: `python_executable`, requirements and
    jars change nothing here.
    """
    files = {file.name: Path(file.path).absolute() for file in dependencies.cached_files}
    with importable(dependencies.python_files):
        if not dependencies.archives:
            yield files
            return
        with tempfile.TemporaryDirectory(prefix="opchain-archives-") as folder:
            yield files | _unpacked(dependencies.archives, Path(folder))


@contextmanager
def importable(python_files: Sequence[str]) -> Iterator[None]:
    """Within the block modules can be imported from these files and folders."""
    added = [_import_root(Path(file)) for file in python_files]
    sys.path[:0] = added
    try:
        yield
    finally:
        for root in added:
            if root in sys.path:
                sys.path.remove(root)


def _import_root(path: Path) -> str:
    """What continues the path: a .py file's folder, a package's parent, else the folder or zip itself."""
    is_module = path.suffix == ".py" or (path / "__init__.py").is_file()
    return str((path.parent if is_module else path).absolute())


def _unpacked(archives: Sequence[PythonArchive], folder: Path) -> dict[str, Path]:
    for archive in archives:
        shutil.unpack_archive(archive.path, folder / archive.name)
    return {archive.name: folder / archive.name for archive in archives}
