"""Storage of any kind: files are written whole or not at all, and one of several publishers wins."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.checkpoint.storage import StoredFile, checkpoint_storage, checksum
from opchain.runtime.errors import CheckpointError, CorruptCheckpointError

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.runtime.checkpoint.storage import CheckpointStorage


def test_get_returns_what_was_put(any_storage: CheckpointStorage) -> None:
    file = any_storage.put("shared/1/a.state", b"abc")
    assert file == StoredFile("shared/1/a.state", 3, checksum(b"abc"))
    assert any_storage.get(file) == b"abc"
    assert any_storage.names() == ["shared/1/a.state"]


def test_the_error_names_a_missing_file(any_storage: CheckpointStorage) -> None:
    file = any_storage.put("shared/1/a.state", b"abc")
    any_storage.delete(file.name)
    any_storage.delete(file.name)
    with pytest.raises(CorruptCheckpointError, match=r"shared/1/a\.state is missing"):
        any_storage.get(file)
    with pytest.raises(FileNotFoundError):
        any_storage.read(file.name)


@given(st.binary(min_size=1, max_size=50), st.data())
def test_a_flipped_bit_is_detected(data: bytes, draw: st.DataObject) -> None:
    pytest.importorskip("fsspec")
    storage = checkpoint_storage("memory://bits")
    file = storage.put("a", data)
    place = draw.draw(st.integers(0, len(data) - 1))
    changed = bytearray(data)
    changed[place] ^= 1 << draw.draw(st.integers(0, 7))
    storage.write("a", bytes(changed))
    with pytest.raises(CorruptCheckpointError, match="a was altered: its checksum"):
        storage.get(file)


def test_a_truncated_file_is_detected(any_storage: CheckpointStorage) -> None:
    file = any_storage.put("a", b"abcdef")
    any_storage.write("a", b"abc")
    with pytest.raises(CorruptCheckpointError, match="has 3 bytes, but 6 were written"):
        any_storage.get(file)


def test_one_of_two_publishers_wins(any_storage: CheckpointStorage) -> None:
    any_storage.publish("chk-1/_metadata", b"first")
    with pytest.raises(FileExistsError):
        any_storage.publish("chk-1/_metadata", b"second")
    assert any_storage.read("chk-1/_metadata") == b"first"
    assert any_storage.names() == ["chk-1/_metadata"]


def test_names_and_children_list_files_and_folders(any_storage: CheckpointStorage) -> None:
    assert any_storage.names() == any_storage.names("nothing") == []
    assert any_storage.children() == any_storage.children("nothing") == []
    for name in ("shared/2/b", "shared/10/a", "chk-2/_metadata"):
        any_storage.put(name, b"")
    assert any_storage.names("shared") == ["shared/10/a", "shared/2/b"]
    assert any_storage.children() == ["chk-2", "shared"]
    assert any_storage.children("shared") == ["10", "2"]


def test_deleting_a_folder_removes_all_its_files(any_storage: CheckpointStorage) -> None:
    for name in ["a/b", "a/c/d", "e", "ab"]:
        any_storage.write(name, b"1")
    any_storage.delete_folder("a")
    any_storage.delete_folder("e")
    any_storage.delete_folder("missing")
    assert any_storage.names() == ["ab"]
    assert any_storage.children() == ["ab"]


def test_deleting_a_folder_removes_unfinished_files_of_other_writers(tmp_path: Path) -> None:
    storage = checkpoint_storage(str(tmp_path))
    storage.write("spark/0", b"1")
    (tmp_path / "spark" / ".1.tmp").touch()
    storage.delete_folder("spark")
    assert list(tmp_path.iterdir()) == []


def test_a_storage_can_be_pickled_for_tasks(any_storage: CheckpointStorage) -> None:
    file = any_storage.put("a", b"abc")
    again = pickle.loads(pickle.dumps(any_storage))
    assert again.get(file) == b"abc"
    assert again.url == any_storage.url


def test_a_url_with_an_unknown_scheme_is_refused() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(CheckpointError, match="nowhere://x can't be opened: Protocol not known"):
        checkpoint_storage("nowhere://x")
