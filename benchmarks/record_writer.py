"""Compares the record writer in a keyed exchange with a hand-written loop.

Run `python benchmarks/record_writer.py`. The loop runs `buckets[hash(key) % n].append(record)`, and pickles each 10,000
records of a bucket; it checks the sizes once per batch. The writer gets lists of records and keys, as generated code
appends them. It computes Flink's key groups, splits records into buffers, and adds numbers and checksums. The result is
nanoseconds per record, the median of alternating rounds. Records and keys are new objects in each round, as after
unpickling.
"""

from __future__ import annotations

import pickle
import random
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

from opchain.runtime.program.operator_specs import OperatorSpec
from opchain.runtime.program.vertex_program import (
    KeyProgram,
    OperatorProgram,
    OutputProgram,
    Shipping,
)
from opchain.runtime.records.garbage_collection import gc_relaxed
from opchain.runtime.task.output.record_writer import RecordWriter

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS = 1_000_000
CHANNELS = 4
BATCH = 4096
PER_BUCKET = 10_000
ROUNDS = 5

Batches = list[list[Any]]


def by_hand(batches: Batches, key: Callable[[Any], Any] | None) -> int:
    """Runs the expert's loop; returns the number of bytes."""
    emitted: list[bytes] = []
    buckets: list[list[Any]] = [[] for _ in range(CHANNELS)]
    for batch in batches:
        if key is None:
            for record in batch:
                buckets[hash(record) % CHANNELS].append(record)
        else:
            for record in batch:
                buckets[hash(record[0]) % CHANNELS].append(record)
        for number, bucket in enumerate(buckets):
            if len(bucket) >= PER_BUCKET:
                emitted.append(pickle.dumps(bucket, 5))
                buckets[number] = []
    emitted += [pickle.dumps(bucket, 5) for bucket in buckets]
    return sum(map(len, emitted))


def by_writer(batches: Batches, key: Callable[[Any], Any] | None) -> int:
    """Writes the same records with the writer; returns the number of bytes."""
    emitted: list[bytes] = []
    operator = OperatorProgram(0, "map", "cbc357ccb763df2852fee8c4fc7d55f2", "", OperatorSpec(), -1)
    output = OutputProgram(
        operator=0,
        tag=None,
        shipping=Shipping.KEY_GROUP,
        first_target=0,
        target_parallelism=CHANNELS,
        target_max_parallelism=128,
        channel_base=0,
        label="map -> sum",
        key=KeyProgram(key, "key_by", ""),
        carries_timestamps=False,
    )
    writer = RecordWriter(
        output, 0, 1, lambda buffer: emitted.append(buffer.payload), operator=operator
    )
    values: list[Any] = []
    keys: list[Any] = []
    for batch in batches:
        if key is None:
            for record in batch:
                values.append(record)
                keys.append(record)
        else:
            for record in batch:
                values.append(record)
                keys.append(record[0])
        writer.write_batch(values, None, keys)
        values.clear()
        keys.clear()
    writer.end_of_input()
    return sum(map(len, emitted))


def kinds_of_records() -> dict[str, list[Any]]:
    """Records by name."""
    rng = random.Random(11)
    return {
        "int, the key itself": [rng.randrange(10**6) for _ in range(RECORDS)],
        "(int, int), 1,000 keys": [(rng.randrange(1000), 1) for _ in range(RECORDS)],
        "(int, int), 1,000,000 keys": [(rng.randrange(10**6), 1) for _ in range(RECORDS)],
        "(str, int), Zipf": [(f"w{int(rng.paretovariate(0.9))}", 1) for _ in range(RECORDS)],
        "(str, int), all different": [(f"word {number}", 1) for number in range(RECORDS)],
    }


def main() -> None:
    """Prints the table."""
    print(f"Python {sys.version.split()[0]}, {CHANNELS} channels, ns per record")
    print(f"{'records':28}{'by hand':>10}{'writer':>10}{'hand/writer':>14}")
    for name, records in kinds_of_records().items():
        key = None if isinstance(records[0], int) else (lambda record: record[0])
        pickled = [
            pickle.dumps(records[start : start + BATCH], 5) for start in range(0, RECORDS, BATCH)
        ]
        times: dict[Any, list[float]] = {by_hand: [], by_writer: []}
        for _ in range(ROUNDS):
            for way, measured in times.items():
                batches = [pickle.loads(batch) for batch in pickled]
                with gc_relaxed():
                    start = time.perf_counter()
                    way(batches, key)
                    measured.append(time.perf_counter() - start)
        hand, writer = (statistics.median(measured) / RECORDS * 1e9 for measured in times.values())
        print(f"{name:28}{hand:10.0f}{writer:10.0f}{hand / writer:14.2f}")


if __name__ == "__main__":
    main()
