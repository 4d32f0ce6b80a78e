"""Program -> JobDependencies: files that a job needs, from the texts of the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.job.dependencies import CachedFile, JobDependencies, PythonArchive

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Program


def job_dependencies(program: Program) -> JobDependencies:
    """What the program's `add_python_file`, `register_cached_file` and so on have named.

    Spark makes cached files executable always, so that the third part of an entry changes nothing.
    """
    settings = program.settings
    return JobDependencies(
        python_files=_parts(settings.python_files, ","),
        archives=tuple(_archive(entry) for entry in _parts(settings.python_archives, ",")),
        python_executable=settings.python_executable,
        requirements=settings.python_requirements,
        jars=_parts(settings.jars, ";") + _parts(settings.classpaths, ";"),
        cached_files=tuple(CachedFile(path, name) for path, name, _ in program.cached_files),
    )


def _parts(text: str | None, separator: str) -> tuple[str, ...]:
    return tuple(part for part in (text or "").split(separator) if part)


def _archive(entry: str) -> PythonArchive:
    """An archive without a folder gets one of its own name, as in Flink."""
    path, _, folder = entry.partition("#")
    return PythonArchive(path, folder or path.rstrip("/").rpartition("/")[2])
