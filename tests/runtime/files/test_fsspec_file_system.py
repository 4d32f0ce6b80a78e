from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.errors import MissingLibraryError
from opchain.runtime.files.file_range import list_files
from opchain.runtime.files.file_systems import FileStatus, file_system_of

if TYPE_CHECKING:
    from collections.abc import Iterator

fsspec = pytest.importorskip("fsspec")
ROOT = "memory://bucket/out"


@pytest.fixture(autouse=True)
def memory() -> Iterator[Any]:
    """An object store in memory: no links, no renames, and folders only as prefixes of names."""
    store = fsspec.filesystem("memory")
    empty(store)  # other tests share the store
    yield store
    empty(store)


def empty(store: Any) -> None:
    store.store.clear()
    store.pseudo_dirs[:] = [""]


def created(url: str, data: bytes) -> str:
    files = file_system_of(url)
    stream = files.create(url)
    stream.write(data)
    files.complete(stream)
    return url


def contents() -> dict[str, bytes]:
    store = fsspec.filesystem("memory").store
    return {path.rpartition("/")[2]: file.getvalue() for path, file in sorted(store.items())}


def test_files_are_listed_as_on_a_local_disk(memory: Any) -> None:
    for name in ("b.txt", "a/c.txt", "a/.hidden", "_SUCCESS"):
        created(f"{ROOT}/{name}", name.encode())
    found = list_files([ROOT])
    assert [(status.path.rpartition("out/")[2], status.size) for status in found] == [
        ("a/c.txt", 7),
        ("b.txt", 5),
    ]
    files = file_system_of(ROOT)
    with files.open_input(found[0].path) as file:
        file.seek(2)
        assert file.read() == b"c.txt"
    assert files.status(found[0].path) == found[0]
    assert files.status(ROOT) is None
    assert list_files([f"{ROOT}/*.txt"]) == [FileStatus(found[1].path, 5)]
    with pytest.raises(FileNotFoundError, match="there is no file or folder 'memory://none'"):
        list_files(["memory://none"])


def test_a_file_gets_its_final_name_when_it_is_moved() -> None:
    staged, target = created(f"{ROOT}/.staged", b"new"), f"{ROOT}/part-0"
    file_system_of(staged).move(staged, target)
    with pytest.raises(FileNotFoundError):
        file_system_of(staged).move(staged, target)
    assert contents() == {"part-0": b"new"}


def test_a_move_that_failed_after_copying_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    staged, target = created(f"{ROOT}/.staged", b"new"), f"{ROOT}/part-0"
    kind = type(fsspec.filesystem("memory"))

    def half(store: Any, source: str, target: str) -> None:
        store.cp_file(store._strip_protocol(source), store._strip_protocol(target))
        raise ConnectionError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(kind, "mv", half)
        with pytest.raises(ConnectionError):
            file_system_of(staged).move(staged, target)
    assert set(contents()) == {".staged", "part-0"}
    file_system_of(staged).move(staged, target)
    assert contents() == {"part-0": b"new"}


def test_touch_creates_an_empty_file() -> None:
    for _ in range(2):
        file_system_of(ROOT).touch(f"{ROOT}/notes/a")
    assert contents() == {"a": b""}


def test_delete_removes_a_file() -> None:
    url = created(f"{ROOT}/a", b"")
    file_system_of(url).delete(url)
    assert contents() == {}


def test_an_unknown_scheme_and_a_missing_fsspec_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ValueError, match="the path 'klingon://a' has a scheme that fsspec does not know"
    ):
        file_system_of("klingon://a")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'opchain\[files\]'"):
        file_system_of("memory://a")


def test_the_error_names_a_missing_library_of_an_fsspec_file_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(url: str) -> None:
        raise ImportError(f"Install s3fs to access {url}")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(MissingLibraryError, match="'s3://a/b' cannot be reached: Install s3fs"):
        file_system_of("s3://a/b")


def test_a_folder_exists_if_a_file_has_its_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    store = fsspec.filesystem("memory")
    monkeypatch.setattr(type(store), "makedirs", lambda *_, **__: None)
    files = file_system_of("memory://records/new")
    files.make_folder("memory://records/new")
    content = files.content("memory://records/new")
    assert content is not None
    assert [status.path.rpartition("/")[2] for status in content.files] == [".folder"]
    files.make_folder("memory://records/new")
