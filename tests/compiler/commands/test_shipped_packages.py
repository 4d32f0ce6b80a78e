from __future__ import annotations

import shutil
import zipfile
from typing import TYPE_CHECKING

import pytest

from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.commands.submit import (
    archive_name,
    install_packages,
    packed_python,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("archive", "name"), [("a/env.tar.gz#env", "env"), ("a/env.zip", "env.zip")]
)
def test_the_folder_of_an_archive_is_its_name_or_the_part_after_the_hash(
    archive: str, name: str
) -> None:
    assert archive_name(archive) == name


@pytest.mark.parametrize("kind", ["zip", "gztar"])
def test_packed_python_finds_the_python_of_a_packed_environment(tmp_path: Path, kind: str) -> None:
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "python").touch()
    (tmp_path / "data").mkdir()
    env, data = (
        shutil.make_archive(str(tmp_path / f"{name} archive"), kind, tmp_path / name)
        for name in ("env", "data")
    )
    assert packed_python((f"{data}#data", f"{env}#env")) == "./env/bin/python"
    assert packed_python((f"{data}#data", "hdfs://host/env.tar.gz#env")) is None


def test_packed_python_refuses_a_file_that_is_not_an_archive(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("text", "utf-8")
    with pytest.raises(CommandError, match="neither a zip nor a tar"):
        packed_python((str(tmp_path / "text.txt"),))
    with pytest.raises(CommandError, match="there is no such file"):
        packed_python((str(tmp_path / "none.zip"),))


def test_requirements_become_an_archive(tmp_path: Path) -> None:
    """A wheel made by hand, so that nothing is fetched."""
    wheel = tmp_path / "tiny_thing-1.0-py3-none-any.whl"
    info = "tiny_thing-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("tiny_thing.py", "X = 1\n")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    (tmp_path / "requirements.txt").write_text(f"{wheel}\n", "utf-8")
    install_packages(tmp_path / "requirements.txt", tmp_path / "dist" / "packages.zip")
    with zipfile.ZipFile(tmp_path / "dist" / "packages.zip") as archive:
        assert archive.read("tiny_thing.py") == b"X = 1\n"


def test_requirements_that_pip_cannot_install_are_refused(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(f"{tmp_path}/none.whl\n", "utf-8")
    with pytest.raises(CommandError, match=r"pip could not install the packages of .*requirements"):
        install_packages(tmp_path / "requirements.txt", tmp_path / "packages.zip")
