"""The files of a job besides its code: Python files, archives, an interpreter, cached files.

PyFlink's workers start in a folder with the unpacked archives. So a function opens `data/file` of an archive that is
unpacked as `data`. `working_folder` does the same here.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class PythonArchive:
    """An archive that is unpacked for the tasks. `name` is the folder's name there."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class CachedFile:
    """A file or folder that functions find under `name` in their distributed cache."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class JobDependencies:
    """As the environment's `add_python_file`, `register_cached_file` and so on name them.

    `python_executable` is the interpreter of the executors, None for Spark's choice. `requirements` is
    the path of a requirements.txt. `jars` are paths or URLs.
    """

    python_files: tuple[str, ...] = ()
    archives: tuple[PythonArchive, ...] = ()
    python_executable: str | None = None
    requirements: str | None = None
    jars: tuple[str, ...] = ()
    cached_files: tuple[CachedFile, ...] = ()


NO_DEPENDENCIES = JobDependencies()


class _WorkingFolders:
    """The folders that blocks of `working_folder` are in, and where the process was before the first."""

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
    """Within the block the process is in a folder; None stays where it is.

    The working directory belongs to the process: of blocks that overlap in several threads, the one that began last
    decides. When the last block ends, the process is where it was before the first.
    """
    if folder is None:
        yield
        return
    _working_folders.enter(folder)
    try:
        yield
    finally:
        _working_folders.leave(folder)


def installed_requirements(requirements: str | None, python: str | None = None) -> list[str]:
    """Installs what `set_python_requirements` names, once per process; the folders to import from, one or none.

    Flink: `PythonEnvironmentManagerUtils.pipInstallRequirements`.

    Args:
        requirements: The path of a requirements.txt, maybe with `#` and a folder of downloaded packages.
        python: The interpreter that will import them; this one if not given.

    Raises:
        FileNotFoundError: There is no such file.
        RuntimeError: pip fails; the message ends with the last lines of its output.
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
    """A folder that is removed at the end of the process."""
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
