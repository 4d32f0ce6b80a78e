from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from opchain.runtime.spark.worker_path import (
    add_once,
    provide_modules,
    provide_modules_for_readers,
)


class Context:
    """The parts of a SparkContext that shipping needs."""

    def __init__(self, master: str, python: str = sys.executable) -> None:
        self.master = master
        self.pythonExec = python
        self.added: list[str] = []

    def addPyFile(self, path: str) -> None:  # noqa: N802 - Spark's name
        self.added.append(Path(path).name)
        sys.path.insert(1, path)  # as Spark does


def provided(context: Context, python: str | None = None) -> tuple[str, ...]:
    return provide_modules(cast("Any", context), python)


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]"])
def test_on_a_local_master_workers_use_this_path_and_no_files_are_shipped(
    master: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    context = Context(master)
    path = provided(context)
    assert context.added == []
    assert path[0] == str(tmp_path)
    assert all(Path(entry).is_absolute() for entry in path)
    assert set(map(os.path.abspath, sys.path)) == set(path)


def test_another_name_of_the_interpreter_in_its_folder_is_the_same_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, target in (("venv", sys.executable), ("other", str(tmp_path / "venv" / "python"))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "python").symlink_to(target)
        (tmp_path / folder / "python3").symlink_to("python")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "venv"))
    here, elsewhere = (
        Context("local", "python3"),
        Context("local", str(tmp_path / "other" / "python")),
    )
    provided(here)
    provided(elsewhere)
    assert here.added == []
    assert elsewhere.added != []  # a link from another folder may lack the packages


@pytest.mark.parametrize(
    ("master", "python", "of_the_job"),
    [
        ("spark://host:7077", sys.executable, None),
        ("yarn", sys.executable, None),
        ("local-cluster[2,1,1024]", sys.executable, None),
        ("local[2]", "/usr/bin/false", None),
        ("local[2]", "no-such-python", None),
        ("local[2]", sys.executable, "/usr/bin/false"),
    ],
)
def test_on_other_masters_opchain_and_the_program_are_shipped_once(
    master: str, python: str, of_the_job: str | None
) -> None:
    context = Context(master, python)
    before = sys.path[:]
    paths = [provided(context, of_the_job) for _ in range(2)]
    assert [name.partition("-")[0] for name in context.added] == ["opchain", "program"]
    assert paths == [tuple(context.added)] * 2
    assert sys.path == before


def test_each_spark_context_gets_its_own_files() -> None:
    one, other = Context("yarn"), Context("yarn")
    for context in (one, other):
        add_once(cast("Any", context), "x.zip", context.addPyFile)
    assert one.added == other.added == ["x.zip"]


def test_python_processes_for_streaming_sources_find_the_same_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = pytest.importorskip("pyspark").SparkFiles
    monkeypatch.setattr(files, "getRootDirectory", lambda: str(tmp_path))
    (tmp_path / "opchain.zip").write_bytes(b"zip")
    provide_modules_for_readers()
    (tmp_path / "later.zip").write_bytes(b"later")
    provide_modules_for_readers()
    folder = tmp_path / "streaming_job"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "opchain.zip": b"zip",
        "later.zip": b"later",
    }
