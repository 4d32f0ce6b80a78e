from __future__ import annotations

import importlib
import shutil
import sys
import tarfile
from pathlib import Path

import pytest
from python_packages import required_package

from opchain.runtime.job.dependencies import (
    NO_DEPENDENCIES,
    CachedFile,
    JobDependencies,
    PythonArchive,
    importable,
    local_files,
)


def test_cached_files_are_used_in_place(tmp_path: Path) -> None:
    with local_files(JobDependencies(cached_files=(CachedFile(str(tmp_path), "data"),))) as files:
        assert files == {"data": tmp_path}


@pytest.mark.parametrize("kind", ["cached file", "Python file"])
def test_a_missing_cached_file_is_refused(tmp_path: Path, kind: str) -> None:
    missing = str(tmp_path / "missing.py")
    dependencies = (
        JobDependencies(cached_files=(CachedFile(missing, "data"),))
        if kind == "cached file"
        else JobDependencies(python_files=(missing,))
    )
    files = local_files(dependencies)
    with pytest.raises(FileNotFoundError, match=r"missing\.py', which does not exist"):
        files.__enter__()


def test_archives_are_extracted_while_the_job_runs(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "words.txt").write_text("a b", "utf-8")
    archive = shutil.make_archive(str(tmp_path / "words"), "zip", tmp_path / "in")
    with local_files(JobDependencies(archives=(PythonArchive(archive, "w"),))) as files:
        unpacked = files["w"]
        assert (unpacked / "words.txt").read_text("utf-8") == "a b"
    assert not unpacked.exists()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = kind, link
    return found


def test_a_python_archive_may_contain_a_link_to_an_interpreter(tmp_path: Path) -> None:
    archive = tmp_path / "env.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.addfile(member("bin/python3", tarfile.SYMTYPE, sys.executable))
        tar.addfile(member("bin/activate"))
        tar.addfile(member("bin/activate.sh", tarfile.LNKTYPE, "bin/activate"))
    with local_files(JobDependencies(archives=(PythonArchive(str(archive), "env"),))) as files:
        assert (files["env"] / "bin" / "python3").readlink() == Path(sys.executable)
        assert (files["env"] / "bin" / "activate.sh").stat().st_nlink == 2


@pytest.mark.parametrize(
    "members",
    [
        [member("../../planted")],
        [member("{outside}/planted")],
        [member("link", tarfile.SYMTYPE, "{outside}"), member("link/planted")],
        [member("link", tarfile.LNKTYPE, "{outside}/kept"), member("link")],
        [member("pipe", tarfile.FIFOTYPE)],
    ],
)
def test_an_archive_writes_nothing_outside_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, members: list[tarfile.TarInfo]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("as it was", "utf-8")
    monkeypatch.setattr("tempfile.tempdir", str(outside))
    archive = tmp_path / "planted.tar"
    with tarfile.open(archive, "w") as tar:
        for item in members:
            name = item.name.replace("{outside}", str(outside))
            tar.addfile(member(name, item.type, item.linkname.replace("{outside}", str(outside))))
    dependencies = JobDependencies(archives=(PythonArchive(str(archive), "data"),))
    with pytest.raises(ValueError, match="is refused: its member"), local_files(dependencies):
        pass
    assert [file.name for file in outside.iterdir()] == ["kept"]
    assert (outside / "kept").read_text("utf-8") == "as it was"


def test_functions_run_in_the_folder_of_the_archives(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "words.txt").write_text("a b", "utf-8")
    archive = shutil.make_archive(str(tmp_path / "words"), "zip", tmp_path / "in")
    dependencies = JobDependencies(archives=(PythonArchive(archive, "data"),))
    before = Path.cwd()
    first, second = local_files(dependencies), local_files(dependencies)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert Path("data/words.txt").read_text("utf-8") == "a b"
    second.__exit__(None, None, None)
    assert Path.cwd() == before


@pytest.mark.slow
def test_requirements_are_installed(tmp_path: Path) -> None:
    requirements = required_package(tmp_path, "tiny_in_process")
    with local_files(JobDependencies(requirements=requirements)):
        assert importlib.import_module("tiny_in_process").NAME == "tiny_in_process"
    sys.modules.pop("tiny_in_process")
    with pytest.raises(ImportError):
        importlib.import_module("tiny_in_process")


@pytest.mark.slow
def test_requirements_that_pip_cannot_install_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("no-such-package==1.0\n")
    (tmp_path / "packages").mkdir()
    requirements = JobDependencies(requirements=f"{path}#{tmp_path / 'packages'}")
    with (
        pytest.raises(RuntimeError, match=r"pip ended with 1; install them(.|\n)*no-such-package"),
        local_files(requirements),
    ):
        pass


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


def test_paths_that_the_job_adds_to_sys_path_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    with importable([str(tmp_path)]):
        sys.path.append("added")
    assert "added" in sys.path
    assert str(tmp_path) not in sys.path


def test_without_dependencies_there_are_no_files() -> None:
    with local_files(NO_DEPENDENCIES) as files:
        assert files == {}
