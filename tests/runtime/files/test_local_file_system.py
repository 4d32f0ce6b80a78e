from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.runtime.files.file_systems import FileStatus, FolderContent, LocalFileSystem

if TYPE_CHECKING:
    from pathlib import Path

FILES = LocalFileSystem()


def created(path: Path, data: bytes) -> str:
    stream = FILES.create(str(path))
    stream.write(data)
    FILES.complete(stream)
    return str(path)


def test_content_lists_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.txt").write_text("abc")
    a = FileStatus(str(tmp_path / "a.txt"), 3)
    assert FILES.content(str(tmp_path)) == FolderContent([a], [str(tmp_path / "b")])
    assert FILES.content(a.path) is None
    assert FILES.status(a.path) == a
    assert FILES.status(str(tmp_path)) is None
    assert FILES.matches(f"{tmp_path}/?") == [str(tmp_path / "b")]


def test_a_dangling_link_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / ".#lock").symlink_to("user@host.1234")  # listed by the system, but without a target
    (tmp_path / "a.txt").write_text("abc")
    assert FILES.content(str(tmp_path)) == FolderContent([FileStatus(f"{tmp_path}/a.txt", 3)], [])


def test_create_refuses_an_existing_file(tmp_path: Path) -> None:
    created(tmp_path / "new" / "folder" / "a", b"first")
    with pytest.raises(FileExistsError):
        FILES.create(str(tmp_path / "new" / "folder" / "a"))
    with FILES.open_input(str(tmp_path / "new" / "folder" / "a")) as file:
        assert file.read() == b"first"


def test_a_file_gets_its_final_name_when_it_is_moved(tmp_path: Path) -> None:
    staged, target = created(tmp_path / "a", b"new"), str(tmp_path / "b")
    FILES.move(staged, target)
    with pytest.raises(FileNotFoundError):
        FILES.move(staged, target)
    FILES.sync_folder(str(tmp_path))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"b": "new"}


def test_touch_creates_an_empty_file(tmp_path: Path) -> None:
    for _ in range(2):
        FILES.touch(str(tmp_path / "notes" / "a"))
    assert (tmp_path / "notes" / "a").read_bytes() == b""
    FILES.remove_empty_folder(str(tmp_path / "notes"))
    FILES.delete(str(tmp_path / "notes" / "a"))
    for _ in range(2):
        FILES.remove_empty_folder(str(tmp_path / "notes"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_another_job_removes_at_the_same_time_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder, removals = LocalFileSystem.make_folder, iter([True, True])

    def removed_at_once(files: LocalFileSystem, path: str) -> None:
        make_folder(files, path)
        if next(removals, False):
            files.remove_empty_folder(path)

    monkeypatch.setattr(LocalFileSystem, "make_folder", removed_at_once)
    created(tmp_path / "staged" / "a", b"")
    monkeypatch.setattr(LocalFileSystem, "make_folder", LocalFileSystem.remove_empty_folder)
    with pytest.raises(FileNotFoundError, match="its folder was removed 5 times"):
        FILES.create(str(tmp_path / "other" / "a"))


def test_the_error_names_a_folder_that_cannot_be_created() -> None:
    with pytest.raises(FileNotFoundError, match="No such file or directory: '/proc/out'"):
        FILES.create("/proc/out/staged/a")


def test_delete_removes_a_file(tmp_path: Path) -> None:
    FILES.delete(created(tmp_path / "a", b""))
    assert list(tmp_path.iterdir()) == []
