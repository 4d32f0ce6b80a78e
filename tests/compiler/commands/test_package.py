from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

BARE = [sys.executable, "-I", "-S", "-c"]
"""Python without site-packages: nothing but the standard library."""


def test_the_zip_is_all_of_opchain(run: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("package")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"opchain: note: {Path('dist', 'opchain.zip')} written\n"
    code = "import sys; sys.path.insert(0, 'dist/opchain.zip'); import opchain.datastream as d, "
    code += "opchain.runtime.spark.stage_tasks, cloudpickle; print(d.__file__)"
    out = subprocess.run([*BARE, code], capture_output=True, text=True, check=True).stdout
    assert Path(out.strip()) == Path("dist/opchain.zip/opchain/datastream/__init__.py")


def test_the_bytes_follow_from_the_sources_alone(run: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "first.zip", tmp_path / "deep" / "second.zip"
    assert run("package", "-o", first).exit_code == 0
    assert run("package", "--output", second).exit_code == 0
    assert first.read_bytes() == second.read_bytes()


def test_every_module_is_in_it_once(run: Any, tmp_path: Path) -> None:
    run("package", "-o", tmp_path / "opchain.zip")
    with zipfile.ZipFile(tmp_path / "opchain.zip") as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    assert "opchain/datastream/__init__.py" in names


def test_a_file_that_cannot_be_written_is_said(run: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("package", "-o", tmp_path / "file" / "opchain.zip")
    assert done.exit_code == 2
    assert "opchain: cannot write " in done.stderr


@pytest.mark.parametrize("kind", ["pyc", "properties", "zip"])
def test_nothing_else_is_in_it(run: Any, tmp_path: Path, kind: str) -> None:
    run("package", "-o", tmp_path / "opchain.zip")
    with zipfile.ZipFile(tmp_path / "opchain.zip") as archive:
        assert [name for name in archive.namelist() if name.endswith(kind)] == []
