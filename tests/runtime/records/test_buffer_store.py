from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.runtime.errors import SpillError
from opchain.runtime.records.buffer_store import BufferStore, local_directories
from opchain.runtime.records.elements import Buffer

BUFFERS = st.lists(
    st.builds(
        Buffer,
        st.just(3),
        st.integers(-3, 3),
        st.integers(0, 3),
        st.integers(0, 20),
        st.binary(max_size=200),
        st.just(()),
    ),
    unique_by=lambda buffer: buffer[1:4],
)


@settings(deadline=None)
@given(BUFFERS, st.integers(0, 2000))
def test_stored_buffers_are_read_sorted_and_complete(buffers: list[Buffer], limit: int) -> None:
    with BufferStore(limit) as store:
        for buffer in buffers:
            store.add(buffer)
            assert store.memory_bytes <= limit
        assert len(store) == len(buffers)
        assert store.memory_bytes + store.spilled_bytes == sum(len(b.payload) for b in buffers)
        assert list(store) == sorted(buffers, key=lambda buffer: buffer[1:4])
        assert store.memory_bytes == 0


@settings(deadline=None)
@given(BUFFERS, st.randoms(), st.integers(0, 500))
def test_the_order_of_arrival_does_not_affect_the_order_of_reading(
    buffers: list[Buffer], rng: Any, limit: int
) -> None:
    with BufferStore(limit) as one, BufferStore(limit) as other:
        for buffer in buffers:
            one.add(buffer)
        rng.shuffle(buffers)
        for buffer in buffers:
            other.add(buffer)
        assert list(one) == list(other)


@settings(deadline=None)
@given(st.lists(BUFFERS, max_size=3), st.randoms(), st.integers(0, 500))
def test_each_task_reads_its_own_buffers_in_any_order_of_tasks(
    by_task: list[list[Buffer]], rng: Any, limit: int
) -> None:
    all_buffers = [b._replace(target=task) for task, own in enumerate(by_task) for b in own]
    tasks = list(range(len(by_task)))
    rng.shuffle(all_buffers)
    rng.shuffle(tasks)
    with BufferStore(limit) as store:
        for buffer in all_buffers:
            store.add(buffer)
        for task in tasks:
            own = [buffer for buffer in all_buffers if buffer.target == task]
            assert list(store.read(task)) == sorted(own)
            assert list(store.read(task)) == []
        assert (len(store), store.memory_bytes) == (0, 0)


def test_buffers_that_a_task_did_not_read_are_released_when_it_ends() -> None:
    with BufferStore(450) as store:
        for sequence in range(3):
            for task in (1, 2):
                store.add(Buffer(task, 0, 0, sequence, bytes(100)))
        assert (store.memory_bytes, store.spilled_bytes) == (400, 200)
        first = store.read(1)
        assert next(first).sequence == 0
        first.close()
        assert store.memory_bytes == 200
        assert [buffer.sequence for buffer in store.read(2)] == [0, 1, 2]


def test_a_store_may_be_closed_before_its_readers() -> None:
    store = BufferStore()
    for sequence in range(3):
        store.add(Buffer(3, 0, 0, sequence, b"payload"))
    reader = store.read(3)
    next(reader)
    store.close()
    assert list(reader) == []


def test_repeated_buffers_are_kept_for_the_input_gate_to_check() -> None:
    with BufferStore() as store:
        store.add(Buffer(0, 0, 0, 0, b"a"))
        store.add(Buffer(0, 0, 0, 0, b"a"))
        assert [buffer.payload for buffer in store] == [b"a", b"a"]


def test_payloads_are_released_while_they_are_read() -> None:
    with BufferStore() as store:
        for sequence in range(4):
            store.add(Buffer(0, 0, 0, sequence, bytes(100)))
        held = [store.memory_bytes for _ in store]
    assert held == [300, 200, 100, 0]


@pytest.mark.parametrize(("limit", "in_memory", "spilled"), [(1000, 100, 0), (0, 0, 100)])
def test_a_payload_with_several_readers_is_stored_once(
    limit: int, in_memory: int, spilled: int
) -> None:
    with BufferStore(limit) as store:
        store.add(Buffer(1, 0, 4, 0, bytes(100), ((2, 5), (2, 6))))
        assert (store.memory_bytes, store.spilled_bytes) == (in_memory, spilled)
        assert list(store.read(2)) == [
            Buffer(2, 0, 5, 0, bytes(100)),
            Buffer(2, 0, 6, 0, bytes(100)),
        ]
        assert store.memory_bytes == in_memory
        assert list(store.read(1)) == [Buffer(1, 0, 4, 0, bytes(100))]
        assert (len(store), store.memory_bytes) == (0, 0)


def test_no_file_is_left_in_the_spill_directory(tmp_path: Path) -> None:
    with BufferStore(0, [str(tmp_path / "made")]) as store:
        store.add(Buffer(0, 0, 0, 0, bytes(1000)))
        assert store.spilled_bytes == 1000
        # The file is unlinked, so it is gone even if the process is killed here.
        assert list((tmp_path / "made").iterdir()) == []
        assert [len(buffer.payload) for buffer in store] == [1000]


def test_no_file_is_created_while_memory_suffices(tmp_path: Path) -> None:
    with BufferStore(1000, [str(tmp_path / "unused")]) as store:
        store.add(Buffer(0, 0, 0, 0, bytes(1000)))
        assert len(list(store)) == 1
    assert not (tmp_path / "unused").exists()


def test_the_next_spill_directory_is_tried_after_a_failure(tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    with BufferStore(0, [str(tmp_path / "a file"), str(tmp_path)]) as store:
        store.add(Buffer(0, 0, 0, 0, b"abc"))
        assert list(store) == [Buffer(0, 0, 0, 0, b"abc")]


def test_the_error_names_all_spill_directories_if_none_works(tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    store = BufferStore(0, [str(tmp_path / "a file"), str(tmp_path / "a file" / "below")])
    with pytest.raises(SpillError, match=r"a file' \(File exists\) or .*below.*SPARK_LOCAL_DIRS"):
        store.add(Buffer(0, 0, 0, 0, b"abc"))


def _with_file(store: BufferStore, monkeypatch: pytest.MonkeyPatch, file: IO[bytes]) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **options: file)
    store.add(Buffer(0, 0, 0, 0, b"abc"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device of a full disk is Linux'")
def test_a_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (
        BufferStore(0, [str(tmp_path)]) as store,
        pytest.raises(SpillError, match=r"No space left on device.*free disk space") as caught,
    ):
        _with_file(store, monkeypatch, open("/dev/full", "r+b", buffering=0))  # noqa: PTH123, SIM115
    assert isinstance(caught.value.__cause__, OSError)
    assert f"'{tmp_path}'" in str(caught.value)


class InPieces:
    """A file that writes and reads at most two bytes per call, as files are allowed to."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def write(self, data: memoryview) -> int:
        return self.file.write(data[:2])

    def read(self, size: int) -> bytes:
        return self.file.read(min(size, 2))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def test_partial_reads_and_writes_are_repeated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = open(tmp_path / "file", "w+b", buffering=0)  # noqa: PTH123, SIM115
    with BufferStore(0, [str(tmp_path)]) as store:
        _with_file(store, monkeypatch, InPieces(file))
        store.add(Buffer(0, 0, 0, 1, b"defgh"))
        assert [buffer.payload for buffer in store] == [b"abc", b"defgh"]


def test_a_truncated_spill_file_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = open(tmp_path / "file", "w+b", buffering=0)  # noqa: PTH123, SIM115
    with BufferStore(0, [str(tmp_path)]) as store:
        _with_file(store, monkeypatch, file)
        file.truncate(1)
        with pytest.raises(SpillError, match=r"expected 3 bytes at 0 .* found 1"):
            list(store)


def test_local_directories_of_spark_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/disk1/tmp,/disk2/tmp,")
    monkeypatch.setattr(os, "getpid", lambda: 7)
    assert local_directories() == ["/disk2/tmp", "/disk1/tmp"]
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    assert local_directories() == [tempfile.gettempdir()]
