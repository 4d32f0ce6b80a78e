"""W3: bids as JSON lines -> count and highest price by auction and 10 seconds of event time -> JSON lines."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.by_hand import parts, shuffled
from benchmarks.environment import PARALLELISM, environment
from benchmarks.json_lines import Written, blocks, empty_folder, write
from benchmarks.measure import Baseline, Workload
from benchmarks.nexmark_events import nexmark_bids
from benchmarks.stateful_processors import w3 as with_state
from benchmarks.transform_with_state import stateful_baseline
from opchain.common import Duration, Encoder, WatermarkStrategy
from opchain.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    StreamFormat,
)
from opchain.datastream.functions import AggregateFunction, ProcessWindowFunction
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.files.line_blocks import line_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from opchain import StreamExecutionEnvironment

    Windows = dict[tuple[int, int], list[int]]
    """Auction and start -> count and highest price."""

SIZE_MS = 10_000
# Where bids are compared one by one, neither side calls max(): a call costs more than the comparison.


class Bid(msgspec.Struct, rename="camel", gc=False):
    """What is read of a bid."""

    auction: int
    price: int
    date_time: int


class Window(msgspec.Struct, gc=False):
    """A row of the result."""

    auction: int
    starttime: int
    bids: int
    price: int


def workloads(session: Any, scale: float) -> list[Workload]:
    """1,000,000 bids on 60,000 auctions in 109 seconds."""
    count = int(1_000_000 * scale)
    path = nexmark_bids(count)

    def ours() -> Written:
        folder = empty_folder("W3-ours")
        env = environment()
        draw(env, path, folder)
        env.execute("W3")
        return Written(folder)

    def by_hand() -> Written:
        folder = empty_folder("W3-by-hand")
        sent = parts(session.sparkContext, lambda part: _sent_by_hand(path, part))
        _write(sent, folder, _rows_by_hand)
        return Written(folder)

    def combined() -> Written:
        folder = empty_folder("W3-combined")
        sent = parts(session.sparkContext, lambda part: _combined_by_hand(path, part))
        _write(sent, folder, _combined_rows_by_hand)
        return Written(folder)

    return [
        Workload(
            "W3 windows of bids",
            count,
            ours,
            (
                Baseline("(a) by hand", by_hand, 0.9),
                Baseline("(a) by hand, combined before sending", combined),
                *stateful_baseline(session, path, "W3", with_state),
            ),
        )
    ]


def draw(env: StreamExecutionEnvironment, path: Path, folder: Path) -> None:
    """The program."""
    env.get_config().enable_object_reuse()  # nothing changes a record that it got
    timed = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_seconds(4)
    ).with_timestamp_assigner(lambda bid, _: bid.date_time)
    source = FileSource.for_record_stream_format(BidLines(), str(path)).build()
    windows = (
        env.from_source(source, timed, "bids")
        .map(lambda bid: (bid.auction, bid.price))
        .key_by(lambda bid: bid[0])
        .window(TumblingEventTimeWindows.of(Duration.of_millis(SIZE_MS)))
        .aggregate(CountAndHighest(), WithWindow())
    )
    sink = FileSink.for_row_format(str(folder), JsonLines()).with_bucket_assigner(
        BucketAssigner.base_path_bucket_assigner()
    )
    windows.sink_to(sink.build())


class BidLines(StreamFormat[Bid]):
    """Lines as bids, parsed a block at a time."""

    def can_be_cut(self, path: str) -> bool:
        """At each line."""
        del path
        return True

    def read(self, part: Any, batch_size: int, malformed: Any) -> Iterator[Sequence[Any]]:
        """The bids of the lines that begin in the part."""
        del malformed
        decode = msgspec.json.Decoder(Bid).decode_lines
        for _, block in line_blocks(part):
            bids = decode(block)
            for first in range(0, len(bids), batch_size):
                yield bids[first : first + batch_size]


class CountAndHighest(AggregateFunction[Any, "list[int]", "list[int]"]):
    """How many bids there are, and the highest price."""

    def create_accumulator(self) -> list[int]:
        """None yet."""
        return [0, 0]

    def add(self, value: Any, accumulator: list[int]) -> list[int]:
        """One more."""
        accumulator[0] += 1
        if value[1] > accumulator[1]:  # noqa: PLR1730 - see above
            accumulator[1] = value[1]
        return accumulator

    def get_result(self, accumulator: list[int]) -> list[int]:
        """Both."""
        return accumulator

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        """Those of all."""
        return [acc_a[0] + acc_b[0], max(acc_a[1], acc_b[1])]


class WithWindow(ProcessWindowFunction["list[int]", Window, int, Any]):
    """The numbers of a window as a row."""

    def process(self, key: int, context: Any, elements: Iterable[list[int]]) -> Iterator[Window]:
        """One row."""
        start = context.window().start
        for count, highest in elements:
            yield Window(key, start, count, highest)


class JsonLines(Encoder[Window]):
    """One JSON object a line."""

    def encode(self, element: Window, stream: BinaryIO) -> None:
        """Appends a line."""
        self.encode_batch((element,), stream)

    def encode_batch(self, elements: Sequence[Window], stream: BinaryIO) -> None:
        """Appends lines."""
        stream.write(msgspec.json.Encoder().encode_lines(elements))


def _write(sent: Any, folder: Path, rows: Callable[[Iterable[bytes]], Iterator[bytes]]) -> None:
    written = shuffled(sent).mapPartitionsWithIndex(
        lambda part, batches: write(folder, part, rows(batches))
    )
    written.collect()


def _sent_by_hand(path: Path, part: int) -> Iterator[tuple[int, bytes]]:
    decode = msgspec.json.Decoder(Bid).decode_lines
    for block in blocks(path, part):
        buckets: list[list[Any]] = [[] for _ in range(PARALLELISM)]
        for bid in decode(block):
            auction, time = bid.auction, bid.date_time
            buckets[auction % PARALLELISM].append((auction, time - time % SIZE_MS, bid.price))
        for target, bucket in enumerate(buckets):
            yield target, pickle.dumps(bucket, 5)


def _rows_by_hand(batches: Iterable[bytes]) -> Iterator[bytes]:
    windows: Windows = {}
    for batch in batches:
        for auction, start, price in pickle.loads(batch):
            key = auction, start
            known = windows.get(key)
            if known is None:
                windows[key] = [1, price]
            else:
                known[0] += 1
                if price > known[1]:  # noqa: PLR1730 - see above
                    known[1] = price
    yield _lines(windows)


def _combined_by_hand(path: Path, part: int) -> Iterator[tuple[int, bytes]]:
    decode = msgspec.json.Decoder(Bid).decode_lines
    windows: Windows = {}
    for block in blocks(path, part):
        for bid in decode(block):
            time = bid.date_time
            key = bid.auction, time - time % SIZE_MS
            known = windows.get(key)
            if known is None:
                windows[key] = [1, bid.price]
            else:
                known[0] += 1
                if bid.price > known[1]:  # noqa: PLR1730 - see above
                    known[1] = bid.price
    buckets: list[Windows] = [{} for _ in range(PARALLELISM)]
    for key, numbers in windows.items():
        buckets[key[0] % PARALLELISM][key] = numbers
    for target, bucket in enumerate(buckets):
        yield target, pickle.dumps(bucket, 5)


def _combined_rows_by_hand(batches: Iterable[bytes]) -> Iterator[bytes]:
    windows: Windows = {}
    for batch in batches:
        for key, numbers in pickle.loads(batch).items():
            known = windows.setdefault(key, numbers)
            if known is not numbers:
                known[0] += numbers[0]
                known[1] = max(known[1], numbers[1])
    yield _lines(windows)


def _lines(windows: Windows) -> bytes:
    rows = [Window(*key, *numbers) for key, numbers in windows.items()]
    return msgspec.json.Encoder().encode_lines(rows)
