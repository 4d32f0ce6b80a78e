"""LocalStorage: no half-written file has its final name, wherever the writer dies."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from opchain.runtime.checkpoint.storage import LocalStorage
from opchain.runtime.errors import CheckpointError

if TYPE_CHECKING:
    from pathlib import Path


def fail(code: int) -> Any:
    def failing(*_: Any, **__: Any) -> NoReturn:
        raise OSError(code, os.strerror(code))

    return failing


@pytest.mark.parametrize("method", ["write", "publish"])
def test_a_full_disk_leaves_no_partial_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.write("shared/a", b"before")
    monkeypatch.setattr(os, "fsync", fail(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left"):
        getattr(storage, method)("shared/b", b"abc")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "shared"]


def test_a_full_disk_during_link_is_not_reported_as_missing_link_support(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", fail(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left"):
        LocalStorage(str(tmp_path)).publish("chk-1/_metadata", b"abc")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_file_system_without_hard_links_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", fail(errno.EPERM))
    with pytest.raises(CheckpointError, match="has no hard links"):
        LocalStorage(str(tmp_path)).publish("chk-1/_metadata", b"")
    assert [path.name for path in tmp_path.rglob("*")] == ["chk-1"]


def test_a_file_has_no_name_while_it_is_being_written(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/a.state.0badcafe.tmp").write_bytes(b"half")
    assert storage.names() == storage.children("shared") == []


def test_empty_folders_are_removed(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path / "root"))
    storage.write("shared/1/a", b"")
    storage.write("shared/2/b", b"")
    storage.delete("shared/1/a")
    assert storage.children("shared") == ["2"]
    storage.delete("shared/2/b")
    assert (tmp_path / "root").is_dir()
    assert storage.children() == []


def test_one_of_many_concurrent_publishers_wins(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from opchain.runtime.checkpoint.storage import LocalStorage\n"
        "storage = LocalStorage(sys.argv[1])\n"
        "sys.stdin.readline()\n"
        "for number in range(50):\n"
        "    try:\n"
        "        storage.publish(f'chk-{number}/_metadata', sys.argv[2].encode() * 1000)\n"
        "    except FileExistsError:\n"
        "        continue\n"
        "    print(number)\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    won = {
        name: [int(line) for line in process.communicate()[0].split()]
        for name, process in zip("ab", processes, strict=True)
    }
    assert sorted(won["a"] + won["b"]) == list(range(50))
    for name, numbers in won.items():
        for number in numbers:
            content = (tmp_path / f"chk-{number}/_metadata").read_bytes()
            assert content == name.encode() * 1000


@pytest.mark.parametrize("file", ["checkpoints", "checkpoints/runs"])
def test_a_file_in_place_of_a_folder_is_not_reported_as_another_writer(
    tmp_path: Path, file: str
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    storage = LocalStorage(str(tmp_path / "checkpoints"))
    for write in (storage.write, storage.publish):
        with pytest.raises(CheckpointError, match=f"{file} is not a directory"):
            write("runs/1.run", b"")
