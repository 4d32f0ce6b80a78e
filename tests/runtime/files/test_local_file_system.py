from __future__ import annotations

import os
from itertools import count
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.files.file_systems import FileStatus, FolderContent, LocalFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = LocalFileSystem()


def numbered(folder: Path) -> Iterator[str]:
    return (str(folder / f"part-{number}") for number in count())


def created(path: Path, data: bytes) -> str:
    stream = FILES.create(str(path))
    stream.write(data)
    FILES.complete(stream)
    return str(path)


def test_files_and_folders_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.txt").write_text("abc")
    a = FileStatus(str(tmp_path / "a.txt"), 3)
    assert FILES.content(str(tmp_path)) == FolderContent([a], [str(tmp_path / "b")])
    assert FILES.content(a.path) is None
    assert FILES.status(a.path) == a
    assert FILES.status(str(tmp_path)) is None
    assert FILES.matches(f"{tmp_path}/?") == [str(tmp_path / "b")]


def test_what_is_gone_before_it_is_looked_at_is_not_there(tmp_path: Path) -> None:
    (tmp_path / ".#lock").symlink_to("user@host.1234")  # listed, and nothing there
    (tmp_path / "a.txt").write_text("abc")
    assert FILES.content(str(tmp_path)) == FolderContent([FileStatus(f"{tmp_path}/a.txt", 3)], [])


def test_a_new_file_is_never_an_old_one(tmp_path: Path) -> None:
    created(tmp_path / "new" / "folder" / "a", b"first")
    with pytest.raises(FileExistsError):
        FILES.create(str(tmp_path / "new" / "folder" / "a"))
    with FILES.open_input(str(tmp_path / "new" / "folder" / "a")) as file:
        assert file.read() == b"first"


def test_the_first_free_name_is_taken(tmp_path: Path) -> None:
    (tmp_path / "part-0").write_text("earlier")
    hidden = created(tmp_path / ".hidden", b"new")
    FILES.publish(hidden, numbered(tmp_path))
    FILES.publish(hidden, numbered(tmp_path))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "part-0": "earlier",
        "part-1": "new",
    }


@pytest.mark.parametrize("has_links", [True, False])
def test_an_interrupted_publication_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    hidden = created(tmp_path / ".hidden", b"new")

    def interrupted(*_: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if has_links:
            patch.setattr(os, "unlink", interrupted)
        else:
            patch.setattr(os, "link", refused)
            patch.setattr(os, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            FILES.publish(hidden, numbered(tmp_path))
    FILES.publish(hidden, numbered(tmp_path))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"part-0": "new"}


def refused(source: str, target: str) -> None:
    raise PermissionError(f"no links: {source} {target}")


def test_a_file_can_be_removed(tmp_path: Path) -> None:
    FILES.delete(created(tmp_path / "a", b""))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["link", "unlink"])
def test_two_that_publish_the_same_file_at_once_give_it_one_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    created(tmp_path / "part-0", b"before")
    hidden = created(tmp_path / ".hidden", b"a")
    original = getattr(os, call)

    def late(*paths: str) -> None:
        monkeypatch.undo()
        FILES.publish(hidden, numbered(tmp_path))
        original(*paths)

    monkeypatch.setattr(os, call, late)
    FILES.publish(hidden, numbered(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part-0", "part-1"]
    assert (tmp_path / "part-1").read_bytes() == b"a"


def test_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    hidden = created(tmp_path / ".hidden", b"a")
    with pytest.raises(FileNotFoundError):
        FILES.publish(hidden, numbered(tmp_path / "gone"))
