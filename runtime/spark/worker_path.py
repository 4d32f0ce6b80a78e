"""What Python workers can import: opchain, and the modules beside the program.

On a local master with the driver's interpreter nothing is copied: workers get the driver's import path. Otherwise
`addPyFile` sends zips of opchain and of the program's modules to executors. The zips precede installed packages, so
driver and executors run the same opchain, whichever version the cluster has. The same sources give the same bytes, and
their digest names the file: Spark refuses another file of a known name.

The program's modules are all loaded modules that belong neither to Python, nor to an installed package, nor to
opchain. If one module of a package is loaded, the whole package is sent.

Files that a job names are brought by Spark's own means: Python files extend the workers' path, archives are unpacked,
cached files are copied. Functions find archives and cached files in their distributed cache. Tasks of a job with
archives run in the folder that contains them, as PyFlink's programs expect.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import io
import os
import shutil
import site
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.job.dependencies import JobDependencies, installed_requirements
from opchain.runtime.spark.session import is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from importlib.abc import Traversable
    from types import ModuleType

    from pyspark import SparkContext
    from pyspark.sql import SparkSession


_PACKAGES = ("opchain", "cloudpickle")
"""What a task may import of ours. cloudpickle must be the one that has pickled the functions."""

_PAGE = "opchain/compiler/plan/page/static/"
"""Where the parts of the plan page are, which only a driver can need."""

_EPOCH = (1980, 1, 1, 0, 0, 0)


def opchain_archive() -> Path:
    """A zip of the installed opchain, and of cloudpickle; made once per process."""
    return _opchain_archive()


def archive_of(sources: Mapping[str, Path], name: str) -> Path:
    """A zip of files by their places in an import root."""
    return _written(name, {place: file.read_bytes() for place, file in sources.items()})


def opchain_sources(*, with_page: bool = False) -> dict[str, bytes]:
    """The sources of the installed opchain, and of cloudpickle, by their places in an import root.

    They are the same for a wheel, an editable install, and a zip on the path.

    Args:
        with_page: Whether the parts of the plan page go along, for a driver that has nothing but a zip.
    """
    contents: dict[str, bytes] = {}
    for package in _PACKAGES:
        contents |= dict(_files_below(files(package), package.replace(".", "/")))
    return {
        place: data for place, data in contents.items() if with_page or not place.startswith(_PAGE)
    }


@functools.cache
def _opchain_archive() -> Path:
    return _written("opchain", opchain_sources())


def _files_below(folder: Traversable, place: str) -> Iterator[tuple[str, bytes]]:
    """The sources of an installed package, which may itself be in a zip, and the parts of the page."""
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            if item.name != "__pycache__":
                yield from _files_below(item, f"{place}/{item.name}")
        elif item.name.endswith((".py", ".typed")) or f"{place}/".startswith(_PAGE):
            yield f"{place}/{item.name}", item.read_bytes()


def zipped(contents: Mapping[str, bytes]) -> bytes:
    """The bytes of a zip; they follow from the contents alone."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        # Folders have entries of their own: without, packages that have no __init__.py cannot be imported
        # from a zip before Python 3.14.
        for folder in sorted(
            {f"{parent.as_posix()}/" for place in contents for parent in Path(place).parents}
        ):
            if folder != "./":
                archive.writestr(zipfile.ZipInfo(folder, _EPOCH), b"")
        for place in sorted(contents):
            entry = zipfile.ZipInfo(place, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, contents[place])
    return buffer.getvalue()


def _written(name: str, contents: Mapping[str, bytes]) -> Path:
    data = zipped(contents)
    path = temporary_folder() / f"{name}-{hashlib.sha256(data).hexdigest()[:16]}.zip"
    path.write_bytes(data)
    return path


@functools.cache
def temporary_folder() -> Path:
    """A folder for files that Spark serves to executors. It exists as long as this process, for executors that start late."""
    folder = tempfile.mkdtemp(prefix="opchain-shipped-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


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
