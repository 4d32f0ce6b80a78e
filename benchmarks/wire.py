"""Compares the wire format with bare pickle, and measures the cost of garbage collection for both.

Run `python benchmarks/wire.py`. Each line is one kind of records in buffers of one size. It has the nanoseconds per
record to write and read a buffer (fastest of several runs) with bare `pickle.dumps` and `loads`, with `encode` and
`decode`, and with the latter and the garbage collector's settings of tasks. Then follow the last two relative to bare
pickle, and the share of the checksum. A buffer is dropped before the next one is read, as in a task.
"""

from __future__ import annotations

import pickle
import sys
import time
from typing import TYPE_CHECKING, Any
from zlib import crc32

from opchain.runtime.records.elements import RecordBatch
from opchain.runtime.records.garbage_collection import gc_relaxed
from opchain.runtime.records.wire import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 9
RECORDS_PER_RUN = 200_000


def kinds_of_records(count: int) -> dict[str, list[Any]]:
    """Batches of records by name."""
    return {
        "small ints": [number % 200 for number in range(count)],
        "ints": list(range(1_000_000, 1_000_000 + count)),
        "strings": [f"word {number}" for number in range(count)],
        "(str, int)": [(f"word {number}", 1) for number in range(count)],
        "(int, (str, float))": [(number, (f"w{number}", 0.5)) for number in range(count)],
    }


def nanoseconds(actions: list[Callable[[], Any]], count: int) -> list[float]:
    """Nanoseconds per record of each action: the fastest of RUNS. The actions take turns."""
    best = [float("inf")] * len(actions)
    calls = RECORDS_PER_RUN // count
    for _ in range(RUNS):
        for number, action in enumerate(actions):
            start = time.perf_counter()
            for _ in range(calls):
                action()
            best[number] = min(best[number], time.perf_counter() - start)
    return [seconds / calls / count * 1e9 for seconds in best]


def main() -> None:
    """Prints the table."""
    print(f"Python {sys.version.split()[0]}, nanoseconds per record")
    columns = ("pickle", "wire", "relaxed", "wire", "relaxed", "of it crc")
    print(f"{'records':20}{'buffer':>8}" + "".join(f"{column:>10}" for column in columns))
    for count in (4096, 8192):
        for name, values in kinds_of_records(count).items():
            batch = [RecordBatch(values)]
            payload = encode(batch)

            def bare(values: list[Any] = values) -> None:
                pickle.loads(pickle.dumps(values, 5))

            def wire(batch: list[Any] = batch) -> None:
                decode(encode(batch))

            def checksums(payload: bytes = payload) -> None:
                crc32(payload)
                crc32(payload)

            pickled, wired, checked = nanoseconds([bare, wire, checksums], count)
            with gc_relaxed():
                (relaxed,) = nanoseconds([wire], count)
            print(
                f"{name:20}{count:8}"
                + "".join(f"{number:10.1f}" for number in (pickled, wired, relaxed))
                + "".join(f"{number / pickled:10.1%}" for number in (wired, relaxed, checked))
            )


if __name__ == "__main__":
    main()
