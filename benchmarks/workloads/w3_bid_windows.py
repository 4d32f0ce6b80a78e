"""W3: bids as JSON lines -> count and highest price by auction and 10 seconds of event time -> JSON lines."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

from benchmarks.by_hand import batched, parts, shuffled, texts
from benchmarks.environment import PARALLELISM, environment
from benchmarks.in_process import lines
from benchmarks.json_lines import Written, empty_folder, write
from benchmarks.measure import Baseline, Workload
from benchmarks.nexmark_events import nexmark_bids
from benchmarks.stateful_processors import w3 as with_state
from benchmarks.transform_with_state import stateful_baseline
from opchain.common import Duration, Encoder, Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream.connectors.file_system import FileSink
from opchain.datastream.functions import AggregateFunction, ProcessWindowFunction
from opchain.datastream.window import TumblingEventTimeWindows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from opchain import StreamExecutionEnvironment

    Windows = dict[tuple[int, int], tuple[int, int]]
    """Count and highest price by auction and start of the window."""

SIZE_MS = 10_000


def workloads(session: Any, scale: float) -> list[Workload]:
    """1,000,000 bids on 60,000 auctions in 109 seconds, in two files."""
    count = int(1_000_000 * scale)
    paths = nexmark_bids(count)

    def ours() -> Written:
        folder = empty_folder("W3-ours")
        env = environment()
        draw(env, paths, folder)
        env.execute("W3")
        return Written(folder)

    def by_hand() -> Written:
        folder = empty_folder("W3-by-hand")
        sent = parts(session.sparkContext, lambda part: _sent_by_hand(paths[part]))
        _write(sent, folder, _rows_by_hand)
        return Written(folder)

    def combined() -> Written:
        folder = empty_folder("W3-combined")
        sent = parts(session.sparkContext, lambda part: _combined_by_hand(paths[part]))
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
                *stateful_baseline(session, paths, "W3", with_state),
            ),
        )
    ]


def draw(env: StreamExecutionEnvironment, paths: Sequence[Path], folder: Path) -> None:
    """The program."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4))
    bids = lines(env, paths).map(bid_of, output_type=Types.TUPLE([Types.LONG()] * 3))
    timed = bids.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(DateTime()))
    windows = (
        timed.key_by(lambda bid: bid[0], key_type=Types.LONG())
        .window(TumblingEventTimeWindows.of(Duration.of_millis(SIZE_MS)))
        .aggregate(CountAndHighest(), WithWindow(), output_type=Types.STRING())
    )
    encoder = Encoder.simple_string_encoder()
    windows.sink_to(FileSink.for_row_format(str(folder), encoder).build())


def bid_of(line: str) -> tuple[int, int, int]:
    """Auction, price and time of a line."""
    bid = json.loads(line)
    return bid["auction"], bid["price"], bid["dateTime"]


class DateTime(TimestampAssigner):
    """The time of a bid."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Its third field."""
        del record_timestamp
        return int(value[2])


class CountAndHighest(AggregateFunction[Any, Any, Any]):
    """How many bids there are, and the highest price."""

    def create_accumulator(self) -> tuple[int, int]:
        """None yet."""
        return 0, 0

    def add(self, value: Any, accumulator: tuple[int, int]) -> tuple[int, int]:
        """One more."""
        return accumulator[0] + 1, max(accumulator[1], value[1])

    def get_result(self, accumulator: tuple[int, int]) -> tuple[int, int]:
        """Both."""
        return accumulator

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        """The sum of the counts, and the higher price."""
        return acc_a[0] + acc_b[0], max(acc_a[1], acc_b[1])


class WithWindow(ProcessWindowFunction[Any, str, int, Any]):
    """The numbers of a window as a line of JSON."""

    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterator[str]:
        """One line."""
        start = context.window().start
        for count, highest in elements:
            yield line_of(key, start, count, highest)


def line_of(auction: int, start: int, count: int, highest: int) -> str:
    """A window as a line of JSON."""
    return json.dumps({"auction": auction, "starttime": start, "bids": count, "price": highest})


def _write(sent: Any, folder: Path, rows: Callable[[Iterable[bytes]], Iterator[str]]) -> None:
    written = shuffled(sent).mapPartitionsWithIndex(
        lambda part, batches: write(folder, part, (row.encode() for row in rows(batches)))
    )
    written.collect()


def _sent_by_hand(path: Path) -> Iterator[tuple[int, bytes]]:
    for block in batched(texts(path)):
        buckets: list[list[Any]] = [[] for _ in range(PARALLELISM)]
        for line in block:
            auction, price, time = bid_of(line)
            buckets[auction % PARALLELISM].append((auction, time - time % SIZE_MS, price))
        for target, bucket in enumerate(buckets):
            yield target, pickle.dumps(bucket, 5)


def _rows_by_hand(batches: Iterable[bytes]) -> Iterator[str]:
    windows: Windows = {}
    for batch in batches:
        for auction, start, price in pickle.loads(batch):
            count, highest = windows.get((auction, start), (0, 0))
            windows[auction, start] = count + 1, max(highest, price)
    yield from _lines(windows)


def _combined_by_hand(path: Path) -> Iterator[tuple[int, bytes]]:
    windows: Windows = {}
    for line in texts(path):
        auction, price, time = bid_of(line)
        key = auction, time - time % SIZE_MS
        count, highest = windows.get(key, (0, 0))
        windows[key] = count + 1, max(highest, price)
    buckets: list[Windows] = [{} for _ in range(PARALLELISM)]
    for key, numbers in windows.items():
        buckets[key[0] % PARALLELISM][key] = numbers
    for target, bucket in enumerate(buckets):
        yield target, pickle.dumps(bucket, 5)


def _combined_rows_by_hand(batches: Iterable[bytes]) -> Iterator[str]:
    windows: Windows = {}
    for batch in batches:
        for key, (more, price) in pickle.loads(batch).items():
            count, highest = windows.get(key, (0, 0))
            windows[key] = count + more, max(highest, price)
    yield from _lines(windows)


def _lines(windows: Windows) -> Iterator[str]:
    for key, numbers in windows.items():
        yield line_of(*key, *numbers) + "\n"
