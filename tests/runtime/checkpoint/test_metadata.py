"""Checkpoint metadata: it is read as it was written, with the same bytes, and damage is detected."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.checkpoint.epoch_files import completed_checkpoints, metadata_name
from opchain.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    Committable,
    EpochInput,
    OperatorMetadata,
    StateDescription,
    StoredSource,
    TaskMetadata,
    decode,
    encode,
    latest_checkpoint,
    read_metadata,
)
from opchain.runtime.checkpoint.state_files import TaskState
from opchain.runtime.checkpoint.storage import StoredFile, checksum
from opchain.runtime.errors import CorruptCheckpointError

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.storage import CheckpointStorage

FILE = StoredFile("shared/3/0-a.state", 17, "00ff")
SAMPLE = CheckpointMetadata(
    checkpoint_id=3,
    timestamp_ms=1_700_000_000_000,
    job_name="clicks per Straße",
    run_id="run-1",
    operators=(
        OperatorMetadata(
            "a" * 32,
            "count",
            "clicks.py:14",
            first_task=4,
            parallelism=2,
            max_parallelism=128,
            uid="counts",
            is_keyed=True,
            states=(StateDescription("n", "ValueStateDescriptor", "Long"),),
        ),
    ),
    tasks=tuple(
        TaskMetadata(
            task, "b" * 32, task - 4, TaskState(task, 3, (FILE,), ("a" * 32,), (0, 63)), b"\xff\x00"
        )
        for task in (4, 5)
    ),
    input=EpochInput(
        batch=6,
        clock_ms=1_700_000_000_000,
        unbounded=(StoredSource("d" * 32, "positions", "'clicks' (clicks.py:7)"),),
        bounded=(StoredSource("e" * 32, "bounded", "'names' (clicks.py:8)"),),
    ),
    committables=(Committable("c" * 32, 0, b"\x80handle"),),
    plan={"schema_version": 1, "operators": []},
)


def test_metadata_is_decoded_as_it_was_encoded() -> None:
    assert decode(encode(SAMPLE), "x") == SAMPLE
    assert encode(decode(encode(SAMPLE), "x")) == encode(SAMPLE)


def test_metadata_is_readable_json() -> None:
    document = json.loads(encode(SAMPLE))
    assert (document["format"], document["format_version"]) == ("opchain checkpoint", 1)
    assert document["checkpoint"]["job_name"] == "clicks per Straße"
    assert document["checkpoint"]["tasks"][0]["state"]["files"][0]["name"] == FILE.name
    assert document["checkpoint"]["input"]["unbounded"][0]["kind"] == "positions"


def test_metadata_of_earlier_versions_is_read() -> None:
    """Earlier versions wrote the input of an epoch as a list, and the event time of a task as `rest`."""
    document = json.loads(encode(SAMPLE))
    fields = document["checkpoint"]
    for task in fields["tasks"]:
        task["rest"] = task.pop("event_time")
    del fields["input"]
    fields["sources"] = [
        {"source": "spark batch", "position": 6},
        {"source": "next timer", "position": None},
        {"source": "clock", "position": 1_700_000_000_000},
        {
            "source": "unbounded sources",
            "position": [["d" * 32, "positions", "'clicks' (clicks.py:7)"]],
        },
        {"source": "bounded sources", "position": [["e" * 32, "'names' (clicks.py:8)"]]},
    ]
    assert decode(with_checksum(document), "x") == SAMPLE
    del fields["tasks"]
    with pytest.raises(CorruptCheckpointError, match="x is inconsistent: KeyError: 'tasks'"):
        decode(with_checksum(document), "x")


def with_checksum(document: dict[str, Any]) -> bytes:
    fields = json.dumps(document["checkpoint"], sort_keys=True, separators=(",", ":"))
    return json.dumps({**document, "checksum": checksum(fields.encode())}).encode()


def test_tasks_of_an_operator_and_files_are_listed() -> None:
    (operator,) = SAMPLE.operators
    assert [state.task for state in SAMPLE.tasks_of(operator)] == [4, 5]
    assert SAMPLE.files == {FILE.name: FILE}


@given(st.integers(0, len(encode(SAMPLE)) - 1), st.integers(0, 7))
def test_a_flipped_bit_is_detected(place: int, bit: int) -> None:
    data = bytearray(encode(SAMPLE))
    data[place] ^= 1 << bit
    try:
        found = decode(bytes(data), "x")
    except CorruptCheckpointError:
        return
    assert found == SAMPLE  # the bit was in white space


@given(st.integers(0, len(encode(SAMPLE)) - 2))
def test_truncated_metadata_is_refused(length: int) -> None:
    with pytest.raises(
        CorruptCheckpointError, match="checkpoint file x is not checkpoint metadata"
    ):
        decode(encode(SAMPLE)[:length], "x")


def changed(**fields: object) -> bytes:
    document = json.loads(encode(SAMPLE))
    return json.dumps({**document, **fields}).encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            changed(format_version=2),
            "is of format 'opchain checkpoint' 2, but this version of opch",
        ),
        (changed(format="plan"), "is of format 'plan' 1"),
        (changed(checkpoint={}), "was altered"),
        (b"[]", "is not checkpoint metadata: TypeError"),
        (b"{}", "is not checkpoint metadata: KeyError: 'format'"),
    ],
)
def test_the_error_says_what_is_wrong_with_the_metadata(data: bytes, message: str) -> None:
    with pytest.raises(CorruptCheckpointError, match=message):
        decode(data, "x")


def test_inconsistent_metadata_is_refused_with_the_field(monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads(encode(SAMPLE))
    document["checkpoint"]["tasks"][1]["subtask"] = "one"
    monkeypatch.setattr("opchain.runtime.checkpoint.metadata._checksum", lambda *_: "same")
    document["checksum"] = "same"
    with pytest.raises(
        CorruptCheckpointError, match=r"is inconsistent: tasks\.1\.subtask: Input should"
    ):
        decode(json.dumps(document).encode(), "x")


def test_completed_checkpoints_are_listed_by_number(any_storage: CheckpointStorage) -> None:
    assert completed_checkpoints(any_storage) == []
    assert latest_checkpoint(any_storage) is None
    for epoch in (2, 10):
        metadata = replace(SAMPLE, checkpoint_id=epoch)
        any_storage.publish(metadata_name(epoch), encode(metadata))
    any_storage.write("chk-11/other", b"")
    any_storage.write("chk-x/_metadata", b"")
    assert completed_checkpoints(any_storage) == [2, 10]
    assert read_metadata(any_storage, 2).checkpoint_id == 2
    latest = latest_checkpoint(any_storage)
    assert latest is not None
    assert latest.checkpoint_id == 10
    with pytest.raises(CorruptCheckpointError, match="chk-5/_metadata is missing"):
        read_metadata(any_storage, 5)


def test_the_error_offers_the_checkpoint_before_a_damaged_one(storage: CheckpointStorage) -> None:
    storage.write(metadata_name(7), encode(SAMPLE)[:50])
    with pytest.raises(CorruptCheckpointError, match="there is no checkpoint before it"):
        latest_checkpoint(storage)
    storage.write(metadata_name(6), encode(SAMPLE))
    with pytest.raises(
        CorruptCheckpointError, match=r"chk-7.*checkpoint 6 is complete: to resume from it, .*chk-6"
    ):
        latest_checkpoint(storage)
