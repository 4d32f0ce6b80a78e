"""RemoteStorage: file systems of fsspec without atomic creation are refused; HDFS renames files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from opchain.runtime.errors import CheckpointError

fsspec = pytest.importorskip("fsspec")

from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

from opchain.runtime.checkpoint.storage import RemoteStorage  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Careless(MemoryFileSystem):
    """Checks first and writes then, like file systems without atomic creation."""

    protocol = "careless"
    store: dict[str, Any] = {}  # noqa: RUF012 - as in the base class
    pipe_file = fsspec.AbstractFileSystem.pipe_file


class Renaming(Careless):
    """Like HDFS: a rename fails if the target exists."""

    protocol = "hdfs"
    store: dict[str, Any] = {}  # noqa: RUF012 - as in the base class

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        if self.exists(path2):
            raise OSError(f"rename {path1} to {path2}: failed")
        self.store[path2] = self.store.pop(path1)


class Repeating(Careless):
    """Repeats each request, as if the answer to the first one was lost."""

    protocol = "repeating"
    store: dict[str, Any] = {}  # noqa: RUF012 - as in the base class

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **more: Any) -> None:
        MemoryFileSystem.pipe_file(self, path, value, mode, **more)
        MemoryFileSystem.pipe_file(self, path, value, mode, **more)


@pytest.fixture(params=[Careless, Renaming])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    request.param.store.clear()

    def opened(url: str) -> tuple[Any, str]:
        return request.param(), "/" + url.partition("://")[2]

    monkeypatch.setattr("fsspec.core.url_to_fs", opened)
    yield request.param
    request.param.store.clear()


@pytest.mark.parametrize("kind", [Careless], indirect=True)
def test_a_file_system_without_atomic_creation_is_refused(kind: type) -> None:
    storage = RemoteStorage("careless://a")
    storage.write("shared/a", b"abc")
    with pytest.raises(
        CheckpointError, match="Careless of this fsspec cannot create a file only if"
    ):
        storage.publish("chk-1/_metadata", b"")


@pytest.mark.parametrize("kind", [Renaming], indirect=True)
def test_publish_uses_renames_that_fail_if_the_target_exists(kind: type) -> None:
    storage = RemoteStorage("hdfs://a")
    storage.publish("chk-1/_metadata", b"first")
    with pytest.raises(FileExistsError):
        storage.publish("chk-1/_metadata", b"second")
    assert storage.read("chk-1/_metadata") == b"first"
    storage.write("runs/1.lease", b"a")
    storage.write("runs/1.lease", b"b")
    assert storage.read("runs/1.lease") == b"b"
    assert storage.names() == ["chk-1/_metadata", "runs/1.lease"]


@pytest.mark.parametrize("kind", [Repeating], indirect=True)
def test_a_request_to_publish_may_be_repeated_after_its_answer_was_lost(kind: type) -> None:
    storage = RemoteStorage("repeating://a")
    storage.publish("chk-1/_metadata", b"first")
    with pytest.raises(FileExistsError):
        storage.publish("chk-1/_metadata", b"second")
    assert storage.read("chk-1/_metadata") == b"first"


@pytest.mark.parametrize("kind", [Renaming], indirect=True)
def test_a_rename_that_fails_for_another_reason_raises_that_error(
    kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise OSError("safe mode")

    monkeypatch.setattr(kind, "mv", failing)
    storage = RemoteStorage("hdfs://a")
    with pytest.raises(OSError, match="safe mode"):
        storage.publish("chk-1/_metadata", b"first")
    assert storage.names() == []


class LostConnectionError(Exception):
    """Like the errors of botocore and aiohttp, it is no OSError."""


@pytest.mark.parametrize("kind", [Renaming], indirect=True)
@pytest.mark.parametrize(
    "request_of",
    [
        lambda storage: storage.write("a", b""),
        lambda storage: storage.publish("a", b""),
        lambda storage: storage.read("a"),
        lambda storage: storage.names(),
        lambda storage: storage.children(),
        lambda storage: storage.delete("a"),
        lambda storage: storage.delete_folder("a"),
    ],
)
def test_a_lost_connection_is_an_os_error(
    kind: type, monkeypatch: pytest.MonkeyPatch, request_of: Callable[[RemoteStorage], object]
) -> None:
    def failing(*_: Any, **__: Any) -> NoReturn:
        raise LostConnectionError("can't connect to http://store")

    for call in ("pipe_file", "cat_file", "find", "exists", "ls", "rm_file", "rm"):
        monkeypatch.setattr(kind, call, failing)
    with pytest.raises(OSError, match=r"^LostConnectionError: can't connect to http://store$"):
        request_of(RemoteStorage("hdfs://a"))
