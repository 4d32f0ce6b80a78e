"""fsspec: stores that can't tell who was first are refused; HDFS renames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.errors import CheckpointError

fsspec = pytest.importorskip("fsspec")

from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

from opchain.runtime.checkpoint.storage import RemoteStorage  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator


class Careless(MemoryFileSystem):
    """Looks first and writes then, as file systems do that have nothing better."""

    protocol = "careless"
    store: dict[str, Any] = {}  # noqa: RUF012 - as the class it comes from
    pipe_file = fsspec.AbstractFileSystem.pipe_file


class Renaming(Careless):
    """Like HDFS: a rename fails where the name is taken."""

    protocol = "hdfs"
    store: dict[str, Any] = {}  # noqa: RUF012 - as the class it comes from

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        if self.exists(path2):
            raise OSError(f"rename {path1} to {path2}: failed")
        self.store[path2] = self.store.pop(path1)


@pytest.fixture(params=[Careless, Renaming])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    request.param.store.clear()

    def opened(url: str) -> tuple[Any, str]:
        return request.param(), "/" + url.partition("://")[2]

    monkeypatch.setattr("fsspec.core.url_to_fs", opened)
    yield request.param
    request.param.store.clear()


@pytest.mark.parametrize("kind", [Careless], indirect=True)
def test_a_file_system_that_cannot_tell_who_was_first_is_refused(kind: type) -> None:
    storage = RemoteStorage("careless://a")
    storage.write("shared/a", b"abc")
    with pytest.raises(
        CheckpointError, match="Careless of this fsspec cannot create a file only if"
    ):
        storage.publish("chk-1/_metadata", b"")


@pytest.mark.parametrize("kind", [Renaming], indirect=True)
def test_renames_that_fail_where_the_name_is_taken_decide(kind: type) -> None:
    storage = RemoteStorage("hdfs://a")
    storage.publish("chk-1/_metadata", b"first")
    with pytest.raises(FileExistsError):
        storage.publish("chk-1/_metadata", b"second")
    assert storage.read("chk-1/_metadata") == b"first"
    storage.write("runs/1.lease", b"a")
    storage.write("runs/1.lease", b"b")
    assert storage.read("runs/1.lease") == b"b"
    assert storage.names() == ["chk-1/_metadata", "runs/1.lease"]


@pytest.mark.parametrize("kind", [Renaming], indirect=True)
def test_a_rename_that_fails_for_another_reason_is_no_loss(
    kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise OSError("safe mode")

    monkeypatch.setattr(kind, "mv", failing)
    storage = RemoteStorage("hdfs://a")
    with pytest.raises(OSError, match="safe mode"):
        storage.publish("chk-1/_metadata", b"first")
    assert storage.names() == []
