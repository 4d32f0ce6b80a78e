"""Zips of Python sources for executors: opchain itself, and the modules that a program brings along.

The same sources give the same bytes, whose digest names the file: Spark refuses another file of a known
name, and a program that is edited between two jobs of one session gets a zip of its own.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import io
import shutil
import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.abc import Traversable

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
    """A folder for what Spark serves to executors: it lives as long as this process, since they may come late."""
    folder = tempfile.mkdtemp(prefix="opchain-shipped-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
