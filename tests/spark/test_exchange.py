from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.program.vertex_program import DRIVER, StageProgram
from opchain.runtime.records.buffer_store import BufferStore
from opchain.runtime.records.elements import Buffer
from opchain.runtime.spark import exchange
from opchain.runtime.spark.exchange import (
    addressed,
    collected,
    from_frame,
    receive,
    shuffled,
    to_frame,
    written_raw,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAGE = StageProgram(index=1, tasks=range(10, 13), vertices=(0, 1), slots=((10, 12), (11,)))


def buffers() -> st.SearchStrategy[Buffer]:
    long = st.integers(-(2**63), 2**63 - 1)
    short = st.integers(0, 2**31 - 1)
    others = st.lists(st.tuples(short, short), max_size=3).map(tuple)
    return st.builds(Buffer, st.integers(-1, 2**31 - 1), long, short, short, st.binary(), others)


@given(buffer=buffers())
def test_a_buffer_is_restored_from_its_frame(buffer: Buffer) -> None:
    back = from_frame(to_frame(buffer))
    assert back == buffer
    assert isinstance(back.payload, memoryview)  # the bytes are not copied


def test_a_buffer_too_long_for_spark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MOST_BYTES", 34)
    to_frame(Buffer(1, 0, 0, 0, b"x" * 6))
    with pytest.raises(UnsupportedFeatureError, match="a buffer of 35 bytes, more than the 34"):
        to_frame(Buffer(1, 0, 0, 0, b"x" * 7))


def places(items: list[Buffer | bytes]) -> list[tuple[int, Buffer]]:
    """The partition of each buffer."""
    written = list(addressed(items, STAGE))
    return [
        (struct.unpack("!q", written[index])[0], from_frame(written[index + 1]))
        for index in range(0, len(written), 2)
    ]


@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize(
    ("target", "channel", "place"),
    [(10, 1, 0), (11, 4, 1), (12, 7, 0), (13, 4, 0), (DRIVER, 9, 1), (5, 3, 1)],
)
def test_a_buffer_is_sent_to_the_slot_of_its_task_or_of_its_channel(
    target: int, channel: int, place: int, as_frame: bool
) -> None:
    buffer = Buffer(target, 1, channel, 2, b"payload")
    assert places([to_frame(buffer) if as_frame else buffer]) == [(place, buffer)]


def test_a_slot_keeps_buffers_of_its_tasks_and_passes_on_the_others() -> None:
    sent = [Buffer(target, 0, 0, 0, b"x") for target in (12, 13, 10, DRIVER, 11)]
    frames = [to_frame(buffer) for buffer in sent]
    with BufferStore() as store:
        passing = list(receive(frames, (10, 12), store))
        assert [buffer.target for buffer in store] == [10, 12]
    assert passing == [frames[1], frames[3], frames[4]]
    assert passing[0] is frames[1]


def test_readers_in_one_slot_share_a_frame_that_is_passed_on_to_later_readers() -> None:
    shared = Buffer(10, 7, 3, 0, b"payload", ((12, 5), (11, 6), (20, 8)))
    in_slot_0 = Buffer(10, 7, 3, 0, b"payload", ((12, 5), (20, 8)))
    in_slot_1 = Buffer(11, 7, 6, 0, b"payload")
    assert places([shared]) == [(0, in_slot_0), (1, in_slot_1)]
    with BufferStore() as store:
        passing = list(receive([to_frame(in_slot_0)], (10, 12), store))
        assert store.memory_bytes == len(b"payload")
        assert list(store) == [Buffer(10, 7, 3, 0, b"payload"), Buffer(12, 7, 5, 0, b"payload")]
    assert passing == [Buffer(20, 7, 8, 0, b"payload")]


def test_a_buffer_with_later_readers_only_is_sent_once() -> None:
    later = Buffer(20, 7, 4, 0, b"payload", ((21, 5), (30, 6)))
    assert places([later]) == [(0, later)]


@pytest.mark.spark
def test_each_buffer_arrives_once_in_its_partition(session: SparkSession) -> None:
    draw = random.Random(1)
    sent = [
        Buffer(
            draw.choice([10, 11, 12, 13, DRIVER]),
            0,
            channel,
            sequence,
            draw.randbytes(draw.randrange(9)),
        )
        for channel in range(4)
        for sequence in range(50)
    ]

    def send(partition: int, _: Any) -> Any:
        return addressed((b for b in sent if b.channel == partition), STAGE)

    context = session.sparkContext
    output = written_raw(context.parallelize((), 4).mapPartitionsWithIndex(send))
    arrived = shuffled(output, len(STAGE.slots), "test").mapPartitionsWithIndex(
        lambda partition, frames: [bytes([partition]) + frame for frame in frames]
    )
    found = [(frame[0], from_frame(frame[1:])) for frame in collected(written_raw(arrived))]
    assert sorted(found) == sorted(places(list(sent)))
