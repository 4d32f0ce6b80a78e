"""Sends opchain, the program's modules and its files to Python workers.

With a local master and the driver's interpreter nothing is copied: workers get the driver's import path. Otherwise
`addPyFile` sends zips of opchain and of the program's modules to executors. The zips precede installed packages, so
driver and executors run the same opchain, even if another version is installed on the cluster. The names of the zips
contain a digest of their contents, since Spark refuses a second file of the same name with other contents.

The program's modules are all modules that are loaded, or that a source of the program imports, and that belong neither
to Python, nor to an installed package, nor to opchain. Functions may import modules that the driver has not loaded. If
one module of a package is needed, the whole package is sent.

Spark itself brings the files that a job names: it adds Python files to the workers' path, unpacks archives, and copies
cached files. Functions find archives and cached files in their distributed cache. Tasks of a job with archives run in
the folder that contains the archives, as PyFlink programs expect.
"""

from __future__ import annotations

import ast
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
from importlib.machinery import ModuleSpec, PathFinder
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.files.file_systems import name_of
from opchain.runtime.job.dependencies import JobDependencies, installed_requirements, missing_file
from opchain.runtime.spark.session import is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from importlib.abc import Traversable
    from types import ModuleType

    from pyspark import SparkContext
    from pyspark.sql import SparkSession


_PACKAGES = ("opchain", "cloudpickle")
"""The packages that tasks import. cloudpickle must have the version that has pickled the functions."""

_PAGE = "opchain/compiler/plan/page/static/"
"""The folder with the parts of the plan page, which only a driver may need."""

_EPOCH = (1980, 1, 1, 0, 0, 0)


@functools.cache
def opchain_archive() -> Path:
    """A zip of the installed opchain, and of cloudpickle; made once per process."""
    return _written("opchain", opchain_sources())


def archive_of(sources: Mapping[str, Path], name: str) -> Path:
    """A zip of files, by their paths in the zip."""
    return _written(name, {place: file.read_bytes() for place, file in sources.items()})


def opchain_sources(*, with_page: bool = False) -> dict[str, bytes]:
    """The sources of the installed opchain, and of cloudpickle, by their import paths.

    They are the same for a wheel, an editable install, and a zip on the path.

    Args:
        with_page: Whether the parts of the plan page are included, for a driver that has only the zip.
    """
    contents: dict[str, bytes] = {}
    for package in _PACKAGES:
        contents |= dict(_files_below(files(package), package.replace(".", "/")))
    return {
        place: data for place, data in contents.items() if with_page or not place.startswith(_PAGE)
    }


def _files_below(folder: Traversable, place: str) -> Iterator[tuple[str, bytes]]:
    """The files of an installed package, which may itself be in a zip."""
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            if item.name != "__pycache__":
                yield from _files_below(item, f"{place}/{item.name}")
        elif item.name.endswith((".py", ".typed", ".txt")) or f"{place}/".startswith(_PAGE):
            yield f"{place}/{item.name}", item.read_bytes()


def zipped(contents: Mapping[str, bytes]) -> bytes:
    """The bytes of a zip. Equal contents give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        # Folders need entries: before Python 3.14, packages without __init__.py cannot be imported from a zip that
        # lacks them.
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
    """The files of the user's modules, by their import paths (`shop/prices.py`).

    Data files of packages are left out, and so are extension modules, which cannot be imported from a zip. Imports by a
    computed name are not found.
    """
    loaded = dict(sys.modules if modules is None else modules)
    elsewhere = tuple(_installed_folders())
    found: dict[str, Path] = {}
    for name, module in sorted(loaded.items()):
        if name.partition(".")[0] in _SELF:
            continue
        file = _source_file(module)
        if file is None:
            found |= _files_of_folders(name, _namespace_folders(module), elsewhere)
        elif file.name == "__init__.py":
            found |= _files_of_folders(name, [file.parent], elsewhere)
        elif not _lies_below(file, elsewhere):
            found[f"{name.replace('.', '/')}.py"] = file
    main = _source_file(loaded.get("__main__"))
    sources = [*found.values()] if main is None else [main, *found.values()]
    known = {*_SELF, *loaded}
    while sources:
        for name in _imported_in(sources.pop().read_bytes()) - known:
            known.add(name)
            more = _unloaded_files(name, elsewhere)
            found |= more
            sources += more.values()
    return found


@functools.lru_cache(maxsize=4096)  # a driver can start many jobs with the same sources
def _imported_in(source: bytes) -> frozenset[str]:
    """The top-level names of all modules that a source imports, also inside functions."""
    try:
        statements: list[ast.AST] = [ast.parse(source)]
    except (SyntaxError, ValueError):  # a template in a package, for example
        return frozenset()
    modules: set[str] = set()
    while statements:
        node = statements.pop()
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            modules.add(node.module)
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            statements += getattr(node, field, ())
    return frozenset(module.partition(".")[0] for module in modules)


def _unloaded_files(name: str, elsewhere: tuple[str, ...]) -> dict[str, Path]:
    """The files of a module or package that is not loaded, unless it lies below one of the folders `elsewhere`."""
    spec = PathFinder.find_spec(name)
    if spec is None:
        return {}
    if spec.submodule_search_locations is None:
        file = Path(os.path.realpath(spec.origin or ""))
        is_sent = file.suffix == ".py" and not _lies_below(file, elsewhere)
        return {f"{name}.py": file} if is_sent else {}
    return _files_of_folders(name, map(Path, spec.submodule_search_locations), elsewhere)


def _namespace_folders(module: ModuleType | None) -> list[Path]:
    """The folders of a loaded namespace package, which has no file; none for other modules."""
    spec = getattr(module, "__spec__", None)
    if not isinstance(spec, ModuleSpec) or spec.origin is not None:
        return []
    return list(map(Path, spec.submodule_search_locations or ()))


def _files_of_folders(
    name: str, folders: Iterable[Path], elsewhere: tuple[str, ...]
) -> dict[str, Path]:
    """The files of a package, without those below the folders `elsewhere`, such as a virtual environment in the package."""
    place = name.replace(".", "/")
    return {
        f"{place}/{file.relative_to(folder).as_posix()}": file
        for folder in map(Path, map(os.path.realpath, folders))
        if not _lies_below(folder / "__init__.py", elsewhere)
        for file in sorted(folder.rglob("*.py"))
        if "__pycache__" not in file.parts and not _lies_below(file, elsewhere)
    }


def _source_file(module: ModuleType | None) -> Path | None:
    """The module's .py file; None without one, as for built-in and compiled modules."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py") or not Path(file).is_file():
        return None
    return Path(os.path.realpath(file))


def _installed_folders() -> Iterator[str]:
    """The folders of Python and of installed packages."""
    folders = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += site.getsitepackages() if hasattr(site, "getsitepackages") else []
    folders.append(site.getusersitepackages())
    home = os.environ.get("SPARK_HOME")
    if home:
        folders.append(os.path.join(home, "python"))  # noqa: PTH118 - compared as text
    for folder in folders:
        yield os.path.realpath(folder)


def _lies_below(file: Path, folders: Iterable[str]) -> bool:
    return any(part in _INSTALLED for part in file.parts) or str(file).startswith(
        tuple(folder + os.sep for folder in folders)
    )


_READERS_FOLDER = "streaming_job"
"""The folder in which Spark 4 looks for modules of streaming readers, below the folder of its files."""

_added: WeakKeyDictionary[SparkContext, set[str]] = WeakKeyDictionary()


def provide_modules(context: SparkContext, python_executable: str | None) -> tuple[str, ...]:
    """Makes opchain and the program's modules importable for tasks; returns the first entries of their import path.

    Args:
        context: The context in which the job will run.
        python_executable: The workers' interpreter; None for that of the context.
    """
    if is_local(context) and _is_this_interpreter(python_executable or context.pythonExec):
        return tuple(dict.fromkeys(os.path.abspath(entry) for entry in sys.path))  # noqa: PTH100
    archives = [opchain_archive()]
    sources = user_sources()
    if sources:
        archives.append(archive_of(sources, "program"))
    for archive in archives:
        add_once(context, str(archive), context.addPyFile)
    return tuple(archive.name for archive in archives)


def provide_modules_for_readers() -> None:
    """Makes the modules of tasks importable for the readers of Python streaming sources, too.

    A reader runs in its own process beside the driver, with the executors' Python. It looks for the files of `addPyFile`
    in a folder that Spark does not fill.
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
    """Adds a file to a context that doesn't have it, without changing the driver's import path."""
    added = _added.setdefault(context, set())
    if path not in added:
        before = sys.path[:]
        add(path)
        sys.path[:] = before
        added.add(path)


def _is_this_interpreter(executable: str) -> bool:
    """Whether a command starts the Python that runs here, under any of its names: `python3` is often a link to `python`.

    A link from another folder is another Python: that of a virtual environment is a link to a Python without its packages.
    """
    found, here = shutil.which(executable), Path(sys.executable)
    return found is not None and here.samefile(found) and here.parent.samefile(Path(found).parent)


def provide_files(session: SparkSession, dependencies: JobDependencies) -> dict[str, str]:
    """Gives a job's jars, archives and cached files to Spark; returns the names of cached files and archives in `SparkFiles`.

    Raises:
        FileNotFoundError: A file is missing.
    """
    context = session.sparkContext
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
    """Makes opchain, the program's modules, and the job's Python files and requirements importable.

    Returns the first entries of the import path of tasks. As in PyFlink and in one process, Python files are first.

    Raises:
        FileNotFoundError: A Python file is missing.
        UnsupportedFeatureError: The job has requirements, and runs on a cluster.
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
    modules = provide_modules(context, python)
    python_files = [_python_file(path) for path in dependencies.python_files]
    for path in python_files:
        add_once(context, path, context.addPyFile)
    return (*map(name_of, python_files), *installed, *modules)


def _python_file(path: str) -> str:
    """A zip for the import path: of a module, of a package, or of the modules in a folder, with their data files.

    A wheel, which is a zip, is copied under a name that ends in .zip: Spark adds wheels only to the driver's path.
    """
    if _is_remote(path):
        return path
    source = Path(_existing(path))
    if source.is_dir():
        root = source.parent if (source / "__init__.py").is_file() else source
        files = {
            file.relative_to(root).as_posix(): file
            for file in sorted(source.rglob("*"))
            if file.is_file() and "__pycache__" not in file.parts
        }
        return str(archive_of(files, source.name))
    if source.suffix == ".py":
        return str(archive_of({source.name: source}, source.stem))
    data = source.read_bytes()
    copy = temporary_folder() / f"{source.stem}-{_digest(data)}.zip"
    copy.write_bytes(data)
    return str(copy)


def _cached(context: SparkContext, path: str, name: str) -> str:
    """Gives a cached file to Spark, under a unique name: Spark identifies files by their base names."""
    if _is_remote(path):
        add_once(context, path, context.addFile)
        return path.rstrip("/").rpartition("/")[2]
    source = Path(_existing(path)).absolute()
    if source.is_dir():
        # Spark copies local folders to executors only as archives.
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
        _link_or_copy(source, again)
    add_once(context, str(again), context.addFile)
    return place


def _link_or_copy(source: Path, name: Path) -> None:
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
        raise missing_file(path)
    return local


def _add_jar(session: SparkSession, jar: str) -> None:
    session.sql("ADD JAR '{}'".format(jar.replace("'", "\\'")))
