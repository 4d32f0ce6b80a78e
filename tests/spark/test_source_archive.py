from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from opchain.runtime.spark.worker_path import archive_of, opchain_archive

PYTHON = [
    sys.executable,
    "-S",
    "-I",
    "-c",
]  # without site-packages: only the standard library


def run(code: str) -> str:
    return subprocess.run([*PYTHON, code], capture_output=True, text=True, check=True).stdout


def test_an_executor_needs_only_the_archive() -> None:
    code = f"""
import sys
sys.path.insert(0, {str(opchain_archive())!r})
import opchain.runtime.spark.stage_tasks, opchain.datastream, cloudpickle
from opchain import StreamExecutionEnvironment
print(opchain.__file__.startswith({str(opchain_archive())!r}), sorted(
    name for name in sys.modules if name.split(".")[0] in ("networkx", "pydantic", "numpy", "pyspark")))
"""
    assert run(code) == "True []\n"


def test_the_archive_is_created_once() -> None:
    assert opchain_archive() == opchain_archive()
    assert opchain_archive().is_file()


def test_the_archive_contains_only_sources() -> None:
    with zipfile.ZipFile(opchain_archive()) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    assert {Path(name).suffix for name in names if Path(name).name != "flink_keys.txt"} == {
        ".py",
        ".typed",
    }
    assert "opchain/__init__.py" in names
    assert "opchain/compiler/__init__.py" in names


def test_equal_sources_give_the_same_file_and_other_sources_another_one(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("X = 1", "utf-8")
    first = archive_of({"a.py": tmp_path / "a.py"}, "program")
    again = archive_of({"a.py": tmp_path / "a.py"}, "program")
    assert first == again
    (tmp_path / "a.py").write_text("X = 2", "utf-8")
    assert archive_of({"a.py": tmp_path / "a.py"}, "program") != first


@pytest.mark.parametrize("place", ["module.py", "package/__init__.py", "spaces/inner/module.py"])
def test_modules_and_packages_can_be_imported_from_the_archive(tmp_path: Path, place: str) -> None:
    file = tmp_path / "source.py"
    file.write_text("X = 'found'", "utf-8")
    archive = archive_of({place: file}, "program")
    module = place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    code = f"import sys; sys.path.insert(0, {str(archive)!r}); import {module} as m; print(m.X)"
    assert run(code) == "found\n"
