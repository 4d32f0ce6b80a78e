"""What a job needs beside its own code: Python files, archives, an interpreter, cached files."""

from __future__ import annotations

from dataclasses import dataclass


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
