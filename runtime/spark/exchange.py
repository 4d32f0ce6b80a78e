"""The shuffle between two stages: buffers to partitions, by task number.

One shuffle carries all edges between two stages. The partition of a buffer is the slot of its target task, if this task
is in the next stage. Buffers for later stages and for the driver pass through a slot of the next stage as opaque bytes.
The slot is the same for all buffers of a channel, so all of them come from the same attempt of their sender.

A buffer is sent as a frame: 28 bytes of addresses, 8 bytes for each further reader, and the payload (wire.py has its
checksum). A buffer with several readers is sent as one frame to each slot that has some of them. A reader in a later
stage gets the buffer from the first of these slots. Python writes (partition, frame) pairs directly to Spark's
PairwiseRDD. `RDD.partitionBy` also uses it, but writes pickled lists of pairs. So nothing is pickled, copied twice or
held back in Python. The order of arrival does not matter, since BufferStore sorts, and the JVM spills.

Measured on two cores, medians of quiet runs (`benchmarks/exchange.py`):

    seconds, MB of a Python worker             262 MB, 2 -> 2    262 MB, 2 -> 64    315 MB, 2 -> 100
    partitionBy of (partition, Buffer)            0.9,  70         1.5,  95            2.4, 207
    partitionBy of (partition, frame)             0.8,  69         1.6,  95            2.1, 206
    repartitionAndSortWithinPartitions            1.0, 183         1.5,  95            2.4, 208
    frames into PairwiseRDD (this file)           0.7,  55         1.5,  55            2.4,  55
    the same, small frames joined to 256 KB       1.7,  56         1.6,  58            2.0,  55

The first three hold chunks of 1 to 10 MB for each target before they write: memory grows with the number of
targets. Sorting in the JVM would need more than the 8 bytes that a PairwiseRDD has for a key.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.records.elements import Buffer

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from pyspark import RDD

    from opchain.runtime.program.vertex_program import StageProgram
    from opchain.runtime.records.buffer_store import BufferStore

_ADDRESS = struct.Struct("<iqiqi")
_READER = struct.Struct("<ii")
_PARTITION = struct.Struct("!q")
MOST_BYTES = 2**31 - 1
"""The longest frame: Spark writes its length as a signed 32-bit number."""


def to_frame(buffer: Buffer) -> bytes:
    """The buffer as bytes.

    Raises:
        UnsupportedFeatureError: It is longer than Spark can take.
    """
    target, order, channel, sequence, payload, others = buffer
    address = _ADDRESS.pack(target, order, channel, sequence, len(others))
    frame = b"".join((address, *(_READER.pack(*reader) for reader in others), payload))
    if len(frame) > MOST_BYTES:
        raise UnsupportedFeatureError(
            f"a buffer of {len(frame)} bytes, more than the {MOST_BYTES} that Spark can send: a "
            f"record is too large; split it"
        )
    return frame


def from_frame(frame: bytes) -> Buffer:
    """The buffer again; its payload is a view of the frame."""
    payload: Any = memoryview(frame)[_ADDRESS.size :]
    target, order, channel, sequence, count = _ADDRESS.unpack_from(frame)
    if not count:
        return Buffer(target, order, channel, sequence, payload)
    addresses, payload = payload[: count * _READER.size], payload[count * _READER.size :]
    others = tuple(_READER.iter_unpack(addresses))
    return Buffer(target, order, channel, sequence, payload, others)


def receive(
    frames: Iterable[bytes], tasks: Container[int], store: BufferStore
) -> Iterator[Buffer | bytes]:
    """Stores the buffers for the tasks of a slot, and yields the frames of other buffers unchanged."""
    for frame in frames:
        buffer = from_frame(frame)
        if buffer.others:
            here = [reader for reader in buffer.readers if reader[0] in tasks]
            later = [reader for reader in buffer.readers if reader[0] not in tasks]
            if here:
                store.add(buffer.for_readers(here))
            if later:
                yield buffer.for_readers(later)
        elif buffer.target in tasks:
            store.add(buffer)
        else:
            yield frame


def addressed(buffers: Iterable[Buffer | bytes], stage: StageProgram) -> Iterator[bytes]:
    """The input of Spark's PairwiseRDD: for each buffer its partition of the stage, and then its frame."""
    size = len(stage.slots)
    partitions = [_PARTITION.pack(partition) for partition in range(size)]
    slot_of = {task: slot for slot, tasks in enumerate(stage.slots) for task in tasks}
    for buffer in buffers:
        if isinstance(buffer, bytes):
            frame = buffer
            target, _, channel, _, _ = _ADDRESS.unpack_from(frame)
        elif buffer.others:
            for slot, readers in _by_slot(buffer, slot_of, size):
                yield partitions[slot]
                yield to_frame(buffer.for_readers(readers))
            continue
        else:
            frame = to_frame(buffer)
            target, channel = buffer.target, buffer.channel
        yield partitions[slot_of.get(target, channel % size)]
        yield frame


def _by_slot(
    buffer: Buffer, slot_of: Mapping[int, int], size: int
) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """The readers of a buffer, by the slot that gets it. Readers of later stages are assigned to the first slot."""
    slots: dict[int, list[tuple[int, int]]] = {}
    later = []
    for reader in buffer.readers:
        if reader[0] in slot_of:
            slots.setdefault(slot_of[reader[0]], []).append(reader)
        else:
            later.append(reader)
    if later:
        first = next(iter(slots), buffer.channel % size)
        slots.setdefault(first, []).extend(later)
    yield from slots.items()


def shuffled(stage_output: RDD[Any], partitions: int, name: str) -> RDD[bytes]:
    """One Spark shuffle of the output of `addressed`: an RDD of frames."""
    from pyspark import RDD  # noqa: PLC0415 - executors load this module without pyspark
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415

    jvm: Any = stage_output.ctx._jvm  # noqa: SLF001 - as in RDD.partitionBy
    pairs = jvm.PairwiseRDD(stage_output._jrdd.rdd()).asJavaPairRDD()  # noqa: SLF001
    # The second argument identifies the partitioner, which is never compared.
    moved = pairs.partitionBy(jvm.PythonPartitioner(partitions, 0))
    frames = jvm.PythonRDD.valueOfPair(moved.setName(name))
    return RDD(frames, stage_output.ctx, NoOpSerializer())


def written_raw(rdd: RDD[bytes]) -> RDD[bytes]:
    """The RDD, whose elements reach the JVM without pickling."""
    rdd._bypass_serializer = True  # type: ignore[attr-defined]  # noqa: SLF001 - as in RDD.partitionBy
    return rdd


def collected(rdd: RDD[bytes]) -> Iterator[bytes]:
    """Runs the job; yields the elements of its last RDD one by one when the whole job has succeeded."""
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415
    from pyspark.util import local_connect_and_auth  # noqa: PLC0415 - as in RDD.collect

    jvm: Any = rdd.ctx._jvm  # noqa: SLF001
    served = jvm.PythonRDD.collectAndServe(rdd._jrdd.rdd())  # noqa: SLF001
    file, socket = local_connect_and_auth(served[0], served[1])
    with file, socket:
        socket.settimeout(None)
        serializer: Any = NoOpSerializer()
        yield from serializer.load_stream(file)
