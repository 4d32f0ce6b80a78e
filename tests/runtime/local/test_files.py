from __future__ import annotations

import importlib
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.job.dependencies import (
    NO_DEPENDENCIES,
    CachedFile,
    JobDependencies,
    PythonArchive,
)
from opchain.runtime.local.job import importable, local_files

if TYPE_CHECKING:
    from pathlib import Path


def test_cached_files_lie_where_they_are(tmp_path: Path) -> None:
    with local_files(JobDependencies(cached_files=(CachedFile(str(tmp_path), "data"),))) as files:
        assert files == {"data": tmp_path}


def test_archives_are_unpacked_while_the_job_runs(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "words.txt").write_text("a b", "utf-8")
    archive = shutil.make_archive(str(tmp_path / "words"), "zip", tmp_path / "in")
    with local_files(JobDependencies(archives=(PythonArchive(archive, "w"),))) as files:
        unpacked = files["w"]
        assert (unpacked / "words.txt").read_text("utf-8") == "a b"
    assert not unpacked.exists()


@pytest.mark.parametrize(
    ("made", "named", "module"),
    [
        ("alone.py", "alone.py", "alone"),
        ("package/__init__.py", "package", "package"),
        ("folder/inside.py", "folder", "inside"),
    ],
)
def test_python_files_can_be_imported_while_the_job_runs(
    tmp_path: Path, made: str, named: str, module: str
) -> None:
    (tmp_path / made).parent.mkdir(exist_ok=True)
    (tmp_path / made).write_text("X = 1", "utf-8")
    before = sys.path[:]
    try:
        with importable([str(tmp_path / named)]):
            assert importlib.import_module(module).X == 1
    finally:
        sys.modules.pop(module, None)
    assert sys.path == before


def test_what_the_job_adds_to_the_path_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    with importable([str(tmp_path)]):
        sys.path.append("added")
    assert "added" in sys.path
    assert str(tmp_path) not in sys.path


def test_no_dependencies_no_files() -> None:
    with local_files(NO_DEPENDENCIES) as files:
        assert files == {}
