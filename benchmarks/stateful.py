"""Programs with state over dictionaries of JSON, as PyFlink users write them, against loops by hand in one process.

    python -m benchmarks.stateful [--records 200000] [--reps 3] [--mode BATCH] [sessions first top]

    sessions    clicks of a user with at most 30 s between two, counted: a ValueState and timers
    first       the first click of each user on each page: a ValueState
    top         the three most expensive clicks of a user in each minute: a ListState and timers

Prints CPU microseconds a record and the ratio, by hand / ours: above 1 opchain is faster. The loops use dictionaries
for state, the same functions, and pickles of 4,096 records between two partitions. They do not watch event time: they
finish what is open at the end of the input. In BATCH mode the timers of a key fire behind its last click, so there
are fewer results.
"""
# ruff: noqa: ARG002 - the methods' arguments are PyFlink's

from __future__ import annotations

import argparse
import json
import pickle
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opchain.common import Configuration, Duration, Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.functions import FlatMapFunction, KeyedProcessFunction
from opchain.datastream.state import ListStateDescriptor, ValueStateDescriptor
from opchain.runtime.local.job import run_in_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PARALLELISM = 2
BATCH = 4096
GAP, MINUTE, DISORDER = 30_000, 60_000, 2_000
KEPT = 3


class Tally(FlatMapFunction[Any, Any]):
    """Counts what comes out, into a file for each subtask."""

    def __init__(self, folder: str) -> None:
        self.folder, self.results, self.sum = folder, 0, 0

    def open(self, runtime_context: Any) -> None:
        """Chooses the file."""
        self.name = f"tally-{runtime_context.get_index_of_this_subtask()}"

    def flat_map(self, value: Any) -> Any:
        """Adds a result up."""
        self.results += 1
        self.sum += value[1]
        return ()

    def close(self) -> None:
        """Writes the file."""
        Path(self.folder, self.name).write_text(f"{self.results} {self.sum}")


class Times(TimestampAssigner):
    """The time of a click."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Milliseconds."""
        return value["ts"]


class Sessions(KeyedProcessFunction[Any, Any, Any]):
    """A session ends when nothing has come for 30 s."""

    def open(self, runtime_context: Any) -> None:
        """Gets the state: clicks and the time of the last one."""
        kind = Types.TUPLE([Types.LONG(), Types.LONG()])
        self.open_session = runtime_context.get_state(ValueStateDescriptor("session", kind))

    def process_element(self, value: Any, ctx: Any) -> Any:
        """Counts a click."""
        session = self.open_session.value()
        clicks, last = (0, value["ts"]) if session is None else session
        last = max(last, value["ts"])
        self.open_session.update((clicks + 1, last))
        ctx.timer_service().register_event_time_timer(last + GAP)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        """Emits the session, unless a click has come since."""
        clicks, last = self.open_session.value()
        if last + GAP == timestamp:
            yield ctx.get_current_key(), clicks
            self.open_session.clear()


class First(KeyedProcessFunction[Any, Any, Any]):
    """The first click of a key."""

    def open(self, runtime_context: Any) -> None:
        """Gets the state."""
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        """Lets the first one pass."""
        if self.seen.value() is None:
            self.seen.update(True)
            yield value["page"], value["price"]


class Top(KeyedProcessFunction[Any, Any, Any]):
    """The highest prices of a minute."""

    def open(self, runtime_context: Any) -> None:
        """Gets the state."""
        self.prices = runtime_context.get_list_state(ListStateDescriptor("prices", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        """Keeps the price until the minute ends."""
        self.prices.add(value["price"])
        end = value["ts"] - value["ts"] % MINUTE + MINUTE - 1
        ctx.timer_service().register_event_time_timer(end)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        """Emits the highest prices."""
        for price in sorted(self.prices.get(), reverse=True)[:KEPT]:
            yield ctx.get_current_key(), price
        self.prices.clear()


def by_user(click: Any) -> Any:
    """The user."""
    return click["user"]


def by_user_and_page(click: Any) -> Any:
    """The user and the page, as one text."""
    return f"{click['user']} {click['page']}"


PROGRAMS: dict[str, tuple[Any, Any]] = {
    "sessions": (by_user, Sessions),
    "first": (by_user_and_page, First),
    "top": (by_user, Top),
}


def job_of(name: str, paths: list[str], mode: str) -> Any:
    """The compiled program."""
    configuration = Configuration()
    configuration.set_string("execution.runtime-mode", mode)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(PARALLELISM)
    key, function = PROGRAMS[name]
    text = FileSource.for_record_stream_format(StreamFormat.text_line_format(), *paths).build()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DISORDER))
    clicks = (
        env.from_source(text, WatermarkStrategy.no_watermarks(), "clicks")
        .map(json.loads)
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Times()))
    )
    clicks.key_by(key).process(function()).flat_map(Tally(str(Path(paths[0]).parent))).print()
    job = compile_program(env.program()).job_program
    assert job is not None
    return job


def run(job: Any, folder: str) -> list[int]:
    """How many results there are, and their sum."""
    run_in_process(job)
    tallies = [path.read_text().split() for path in Path(folder).glob("tally-*")]
    return [sum(map(int, column)) for column in zip(*tallies, strict=True)]


def by_hand(name: str, paths: list[str]) -> list[int]:
    """The same in loops."""
    results = total = 0
    key = PROGRAMS[name][0]
    blobs: list[list[bytes]] = [[] for _ in range(PARALLELISM)]
    for path in paths:
        for partition, blob in _sent(path, key):
            blobs[partition].append(blob)
    for received in blobs:
        records = (record for blob in received for record in pickle.loads(blob))
        for _, number in LOOPS[name](records):
            results += 1
            total += number
    return [results, total]


def _sent(path: str, key: Callable[[Any], Any]) -> Iterator[tuple[int, bytes]]:
    buffers: list[list[Any]] = [[] for _ in range(PARALLELISM)]
    with Path(path).open(encoding="utf-8") as lines:
        for line in lines:
            click = json.loads(line)
            partition = hash(key(click)) % PARALLELISM
            buffers[partition].append(click)
            if len(buffers[partition]) >= BATCH:
                yield partition, pickle.dumps(buffers[partition], 5)
                buffers[partition] = []
    for partition, buffer in enumerate(buffers):
        yield partition, pickle.dumps(buffer, 5)


def _sessions(clicks: Iterator[Any]) -> Iterator[tuple[Any, int]]:
    sessions: dict[Any, tuple[int, int]] = {}
    for click in clicks:
        user, at = click["user"], click["ts"]
        count, last = sessions.get(user, (0, at))
        if at - last > GAP:
            yield user, count
            count, last = 0, at
        sessions[user] = (count + 1, max(last, at))
    for user, (count, _) in sessions.items():
        yield user, count


def _first(clicks: Iterator[Any]) -> Iterator[tuple[Any, int]]:
    seen = set()
    for click in clicks:
        key = by_user_and_page(click)
        if key not in seen:
            seen.add(key)
            yield click["page"], click["price"]


def _top(clicks: Iterator[Any]) -> Iterator[tuple[Any, int]]:
    minutes: dict[Any, list[int]] = {}
    for click in clicks:
        key = click["user"], click["ts"] // MINUTE
        minutes.setdefault(key, []).append(click["price"])
    for (user, _), prices in minutes.items():
        for price in sorted(prices, reverse=True)[:KEPT]:
            yield user, price


LOOPS: dict[str, Callable[[Iterator[Any]], Iterator[tuple[Any, int]]]] = {
    "sessions": _sessions,
    "first": _first,
    "top": _top,
}


def made(folder: str, records: int) -> list[str]:
    """Files of clicks, a millisecond apart, out of order by up to 2 s."""
    draw = random.Random(7)
    paths = [str(Path(folder) / f"clicks-{number}.json") for number in range(PARALLELISM)]
    for path in paths:
        with Path(path).open("w", encoding="utf-8") as lines:
            for number in range(records // PARALLELISM):
                click = {
                    "user": int(draw.random() ** 2 * 2000),
                    "page": f"/page/{draw.randrange(50)}",
                    "price": draw.randrange(10_000),
                    "ts": 1_000_000 + number * 5 - draw.randrange(DISORDER),
                    "agent": "Mozilla/5.0",
                }
                lines.write(json.dumps(click) + "\n")
    return paths


def measured(work: Callable[[], list[int]], reps: int) -> tuple[float, list[int]]:
    """The least CPU seconds of some runs, and what came out."""
    found, results = [], []
    for _ in range(reps):
        began = time.process_time()
        results = work()
        found.append(time.process_time() - began)
    return min(found), results


def main() -> None:
    """Measures the programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--mode", choices=["STREAMING", "BATCH"], default="STREAMING")
    parser.add_argument("--code", action="store_true", help="print the generated code")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = made(folder, arguments.records)
        for name in arguments.programs:
            job = job_of(name, paths, arguments.mode)
            if arguments.code:
                print(*(vertex.source for vertex in job.vertices), sep="\n\n")
            ours, results = measured(lambda job=job: run(job, folder), arguments.reps)  # type: ignore[misc]
            hand, expected = measured(lambda name=name: by_hand(name, paths), arguments.reps)  # type: ignore[misc]
            micros = [seconds / arguments.records * 1e6 for seconds in (ours, hand)]
            print(
                f"{name:9} {arguments.mode}: ours {micros[0]:.2f} us, by hand {micros[1]:.2f} us, ratio "
                f"{hand / ours:.2f}, results {results} and {expected}"
            )


if __name__ == "__main__":
    main()
