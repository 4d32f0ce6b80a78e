"""Brings the files that a job names to its executors, by Spark's own means.

Python files continue the workers' path, archives are unpacked, cached files are copied; functions find the
last two in their distributed cache. Tasks of a job with archives run in the folder that holds them, as PyFlink's
programs expect.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.job.dependencies import installed_requirements
from opchain.runtime.spark.session import is_local
from opchain.runtime.spark.worker_path import (
    add_once,
    archive_of,
    provide_modules,
    temporary_folder,
)

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from opchain.runtime.job.dependencies import JobDependencies


def provide_files(session: SparkSession, dependencies: JobDependencies) -> dict[str, str]:
    """Hands a job's files to Spark; the names under which `SparkFiles` knows cached files and archives.

    Raises:
        FileNotFoundError: A file is missing.
    """
    context = session.sparkContext
    for path in dependencies.python_files:
        add_once(context, _python_file(path), context.addPyFile)
    for jar in dependencies.jars:
        add_once(context, jar, lambda path: _add_jar(session, path))
    names: dict[str, str] = {}
    for archive in dependencies.archives:
        add_once(context, f"{_existing(archive.path)}#{archive.name}", context.addArchive)
        names[archive.name] = archive.name
    for cached in dependencies.cached_files:
        names[cached.name] = _cached(context, cached.path, cached.name)
    return names


def provide_imports(context: SparkContext, dependencies: JobDependencies) -> tuple[str, ...]:
    """Makes opchain, the program's modules and its requirements importable; what tasks must add to their path.

    Raises:
        UnsupportedFeatureError: Requirements are to be installed on the executors of a cluster.
    """
    if dependencies.requirements is not None and not is_local(context):
        raise UnsupportedFeatureError(
            f"the packages of '{dependencies.requirements}' would have to be installed on the "
            f"executors of {context.master}, but Spark does not install packages: pack an "
            f"environment, and pass it with env.add_python_archive() and "
            f"env.set_python_executable(), or by spark-submit's --archives"
        )
    python = dependencies.python_executable
    installed = installed_requirements(dependencies.requirements, python)
    return (*installed, *provide_modules(context, python))


def _python_file(path: str) -> str:
    """A zip to put on the path: of a module, of a package, else of what lies in a folder.

    A wheel is renamed to a zip, which is what it is: Spark puts wheels on the driver's path alone.
    """
    if _is_remote(path):
        return path
    source = Path(_existing(path))
    if source.is_dir():
        root = source.parent if (source / "__init__.py").is_file() else source
        files = {file.relative_to(root).as_posix(): file for file in sorted(source.rglob("*.py"))}
        return str(archive_of(files, source.name))
    if source.suffix == ".py":
        return str(archive_of({source.name: source}, source.stem))
    data = source.read_bytes()
    copy = temporary_folder() / f"{source.stem}-{_digest(data)}.zip"
    copy.write_bytes(data)
    return str(copy)


def _cached(context: SparkContext, path: str, name: str) -> str:
    """Hands on a cached file. Spark knows files by their last name, which two of ours may share."""
    if _is_remote(path):
        add_once(context, path, context.addFile)
        return path.rstrip("/").rpartition("/")[2]
    source = Path(_existing(path)).absolute()
    if source.is_dir():
        # Spark copies local folders to executors as archives alone.
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as file:
            for item in sorted(source.iterdir()):
                file.add(item, arcname=item.name)
        place = f"{_digest(buffer.getvalue())}-{source.name}"
        archive = temporary_folder() / f"{place}.tar"
        archive.write_bytes(buffer.getvalue())
        add_once(context, f"{archive}#{place}", context.addArchive)
        return place
    facts = source.stat()
    version = f"{name}\n{source}\n{facts.st_size}\n{facts.st_mtime_ns}"
    place = f"{_digest(version.encode())}-{source.name}"
    again = temporary_folder() / place
    if not again.exists():
        _give_another_name(source, again)
    add_once(context, str(again), context.addFile)
    return place


def _give_another_name(source: Path, name: Path) -> None:
    """By a hard link, since Spark follows the others; by a copy on another file system."""
    try:
        name.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, name)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _is_remote(path: str) -> bool:
    return "://" in path and not path.startswith("file:")


def _existing(path: str) -> str:
    if _is_remote(path):
        return path
    local = path.removeprefix("file://").removeprefix("file:")
    if not os.path.exists(local):  # noqa: PTH110 - a path or a URL, both as strings
        raise FileNotFoundError(f"the job needs the file '{path}', but it does not exist")
    return local


def _add_jar(session: SparkSession, jar: str) -> None:
    session.sql("ADD JAR '{}'".format(jar.replace("'", "\\'")))
