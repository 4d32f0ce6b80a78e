"""The files of a job besides its code: Python files, archives, an interpreter, cached files.

PyFlink's workers start in a folder with the unpacked archives. So a function opens `data/file` of an archive that is
unpacked as `data`. `working_folder` does the same here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class PythonArchive:
    """An archive that is unpacked for the tasks, into a folder called `name`."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class CachedFile:
    """A file or folder that functions find under `name` in their distributed cache."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class JobDependencies:
    """The files of a job, as set with `add_python_file`, `register_cached_file` and similar methods of the environment.

    `python_executable` is the interpreter of the executors; None for Spark's default. `requirements` is the path of a
    requirements.txt. `jars` are paths or URLs.
    """

    python_files: tuple[str, ...] = ()
    archives: tuple[PythonArchive, ...] = ()
    python_executable: str | None = None
    requirements: str | None = None
    jars: tuple[str, ...] = ()
    cached_files: tuple[CachedFile, ...] = ()


NO_DEPENDENCIES = JobDependencies()


class _WorkingFolders:
    """The folders of active `working_folder` blocks, and the working directory before the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._home = ""
        self._folders: list[str | os.PathLike[str]] = []

    def enter(self, folder: str | os.PathLike[str]) -> None:
        with self._lock:
            if not self._folders:
                self._home = os.getcwd()  # noqa: PTH109 - goes to os.chdir
            os.chdir(folder)
            self._folders.append(folder)

    def leave(self, folder: str | os.PathLike[str]) -> None:
        with self._lock:
            self._folders.remove(folder)
            os.chdir(self._folders[-1] if self._folders else self._home)


_working_folders = _WorkingFolders()


@contextmanager
def working_folder(folder: str | os.PathLike[str] | None) -> Iterator[None]:
    """Changes the working directory of the process within the block. None does not change it.

    The working directory belongs to the process. If blocks overlap in several threads, the block that started last
    decides. When the last block ends, the original working directory is restored.
    """
    if folder is None:
        yield
        return
    _working_folders.enter(folder)
    try:
        yield
    finally:
        _working_folders.leave(folder)


def missing_file(path: str | os.PathLike[str]) -> FileNotFoundError:
    """The error for a file of a job that does not exist."""
    return FileNotFoundError(
        f"the job needs the file '{path}', which does not exist: correct the path in register_cached_file(), "
        "add_python_file(), add_python_archive() or the setting python.files"
    )


def installed_requirements(requirements: str | None, python: str | None = None) -> list[str]:
    """Installs the packages of `set_python_requirements`, once per process.

    Returns the folders to import from, one or none.

    Flink: `PythonEnvironmentManagerUtils.pipInstallRequirements`.

    Args:
        requirements: The path of a requirements.txt, optionally with `#` and a folder of downloaded packages.
        python: The interpreter that imports the packages. Default: the current one.

    Raises:
        FileNotFoundError: The file does not exist.
        RuntimeError: pip fails. The message ends with the last lines of its output.
    """
    if requirements is None:
        return []
    path, _, cached = requirements.partition("#")
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return [_installed(path, cached, python or sys.executable, digest).name]


@cache
def _installed(
    path: str, cached: str, python: str, _digest: str
) -> tempfile.TemporaryDirectory[str]:
    """A folder with the packages, which is removed at the end of the process."""
    folder = tempfile.TemporaryDirectory(prefix="opchain-requirements-")
    offline = ["--no-index", "--find-links", cached] if cached else []
    command = [
        "install",
        "--quiet",
        "--ignore-installed",
        "--target",
        folder.name,
        "-r",
        path,
        *offline,
    ]
    ran = subprocess.run(  # noqa: S603 - the program names its own requirements
        [python, "-m", "pip", *command], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        folder.cleanup()
        last = "\n".join((ran.stderr or ran.stdout).strip().splitlines()[-5:])
        raise RuntimeError(
            f"the packages of '{path}' cannot be installed: pip ended with {ran.returncode}; install them for "
            f"{python}, and remove set_python_requirements()\n{last}"
        )
    return folder


@contextmanager
def local_files(dependencies: JobDependencies) -> Iterator[Mapping[str, Path]]:
    """Within the block, the cached files and unpacked archives by name. Python files can be imported.

    Requirements are installed. If there are archives, their folder is the working directory. `python_executable` and
    jars have no effect: this process is the interpreter.

    Raises:
        FileNotFoundError: A file does not exist.
    """
    files = {file.name: Path(file.path).absolute() for file in dependencies.cached_files}
    for path in (*files.values(), *map(Path, dependencies.python_files)):
        if not path.exists():
            raise missing_file(path)
    installed = installed_requirements(dependencies.requirements)
    with importable((*dependencies.python_files, *installed)):
        if not dependencies.archives:
            yield files
            return
        with tempfile.TemporaryDirectory(prefix="opchain-archives-") as folder:
            unpacked = _unpacked(dependencies.archives, Path(folder))
            with working_folder(folder):
                yield files | unpacked


@contextmanager
def importable(python_files: Sequence[str]) -> Iterator[None]:
    """Within the block, modules can be imported from these files and folders."""
    added = [_import_root(Path(file)) for file in python_files]
    sys.path[:0] = added
    try:
        yield
    finally:
        for root in added:
            if root in sys.path:
                sys.path.remove(root)


def _import_root(path: Path) -> str:
    """The import path entry: the folder of a .py file, the parent of a package, or the folder or zip itself."""
    is_module = path.suffix == ".py" or (path / "__init__.py").is_file()
    return str((path.parent if is_module else path).absolute())


def _unpacked(archives: Sequence[PythonArchive], folder: Path) -> dict[str, Path]:
    for archive in archives:
        target = folder / archive.name
        if tarfile.is_tarfile(archive.path):
            with tarfile.open(archive.path) as tar:
                tar.extraction_filter = lambda member, _: member  # _members_inside has checked them
                tar.extractall(target, _members_inside(tar, target))  # noqa: S202 - checked as well
        else:
            shutil.unpack_archive(archive.path, target)
    return {archive.name: folder / archive.name for archive in archives}


def _members_inside(tar: tarfile.TarFile, folder: Path) -> Iterator[tarfile.TarInfo]:
    """The members of an archive, each checked when those before it are unpacked, because they may be links.

    The filters of the standard library are missing in Python 3.11.2 of Debian 12. `data` also refuses the links of a
    virtual environment to its interpreter.
    """
    root = os.path.realpath(folder)
    for member in tar:
        names = (member.name, member.linkname) if member.islnk() else (member.name,)
        for name in names:
            place = os.path.realpath(folder / name)
            if member.isdev() or os.path.commonpath([root, place]) != root:
                raise ValueError(
                    f"the archive {tar.name!r} is refused: its member {member.name!r} is a device, or would be "
                    f"written outside of the folder into which the archive is unpacked: use another archive"
                )
        yield member
