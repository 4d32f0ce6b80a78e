"""Compares stateful programs over JSON dictionaries, as PyFlink users write them, with hand-written loops in one process.

    python -m benchmarks.stateful [--records 200000] [--reps 3] [--mode BATCH] [sessions first top]

    sessions    the number of clicks in a user's session, with a gap of 30 s: a ValueState and timers
    first       the first click of each user on each page: a ValueState
    top         the three most expensive clicks of a user in each minute: a ListState and timers

Prints CPU microseconds per record, and the ratio of the loop's time to opchain's: above 1 opchain is faster. The loops
call the same functions, keep state in dictionaries, and pickle 4,096 records at a time between two partitions. They
ignore event time, and emit open results at the end of the input. In BATCH mode the timers of a key fire after its last
click, so there are fewer results.
"""
# ruff: noqa: ARG002 - the methods' arguments are PyFlink's

from __future__ import annotations

import argparse
import json
import random
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.environment import PARALLELISM, environment
from benchmarks.in_process import exchanged, job_of, lines, measured, read, run
from benchmarks.tally import tallied
from opchain.common import Duration, Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ListStateDescriptor, ValueStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain import DataStream, StreamExecutionEnvironment

GAP, MINUTE, DISORDER = 30_000, 60_000, 2_000
KEPT = 3


class Times(TimestampAssigner):
    """Timestamps: the time of a click."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Milliseconds."""
        return value["ts"]


class Sessions(KeyedProcessFunction[Any, Any, Any]):
    """Counts the clicks of a session, which ends after 30 s without a click."""

    def open(self, runtime_context: Any) -> None:
        """Gets the state: the number of clicks, and the time of the last one."""
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
        """Emits the session, unless a later click continued it."""
        clicks, last = self.open_session.value()
        if last + GAP == timestamp:
            yield ctx.get_current_key(), clicks
            self.open_session.clear()


class First(KeyedProcessFunction[Any, Any, Any]):
    """Emits the first click of a key."""

    def open(self, runtime_context: Any) -> None:
        """Gets the state."""
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        """Emits the click if it is the first."""
        if self.seen.value() is None:
            self.seen.update(True)
            yield value["page"], value["price"]


class Top(KeyedProcessFunction[Any, Any, Any]):
    """Emits the highest prices of a minute."""

    def open(self, runtime_context: Any) -> None:
        """Gets the state."""
        self.prices = runtime_context.get_list_state(ListStateDescriptor("prices", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        """Adds the price to the state, and sets a timer for the end of the minute."""
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
    """The user and the page, as one string."""
    return f"{click['user']} {click['page']}"


PROGRAMS: dict[str, tuple[Any, Any]] = {
    "sessions": (by_user, Sessions),
    "first": (by_user_and_page, First),
    "top": (by_user, Top),
}


def program(name: str, paths: list[str], mode: str) -> Any:
    """The compiled program."""
    env = environment(execution__runtime_mode=mode)
    return job_of(drawn(env, name, paths), str(Path(paths[0]).parent), 1)


def drawn(env: StreamExecutionEnvironment, name: str, paths: list[str]) -> DataStream[Any]:
    """The stream of the program's results."""
    key, function = PROGRAMS[name]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DISORDER))
    clicks = (
        lines(env, paths)
        .map(json.loads)
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Times()))
    )
    return clicks.key_by(key).process(function())


def by_hand(name: str, paths: list[str]) -> tuple[int, int]:
    """Runs the hand-written loops."""
    sent = (map(json.loads, text) for text in read(paths))
    partitions = exchanged(sent, PROGRAMS[name][0])
    return tallied(number for clicks in partitions for _, number in LOOPS[name](clicks))


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


def write_input(folder: str, records: int) -> list[str]:
    """Writes files of clicks, a millisecond apart, out of order by up to 2 s."""
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


def least(work: Callable[[], tuple[int, ...]], reps: int) -> tuple[float, tuple[int, ...]]:
    """The CPU seconds of the fastest run, and the result."""
    runs = [measured(work) for _ in range(reps)]
    return min(seconds for seconds, _ in runs), runs[-1][1]


def compare(
    name: str,
    arguments: argparse.Namespace,
    ours: Callable[[], tuple[int, ...]],
    hand: Callable[[], tuple[int, ...]],
) -> None:
    """Measures a program and its hand-written loop, and prints a line."""
    seconds, results = least(ours, arguments.reps)
    by_hand_seconds, expected = least(hand, arguments.reps)
    micros = [each / arguments.records * 1e6 for each in (seconds, by_hand_seconds)]
    print(
        f"{name:9} {arguments.mode}: ours {micros[0]:.2f} us, by hand {micros[1]:.2f} us, ratio "
        f"{by_hand_seconds / seconds:.2f}, results {results} and {expected}"
    )


def parsed_arguments(description: str | None, programs: list[str]) -> argparse.Namespace:
    """The command line: what to measure, for `compare`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("programs", nargs="*", default=programs)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--mode", choices=["STREAMING", "BATCH"], default="STREAMING")
    parser.add_argument("--code", action="store_true", help="print the generated code")
    return parser.parse_args()


def main() -> None:
    """Measures the programs and prints a line for each."""
    arguments = parsed_arguments(__doc__, list(PROGRAMS))
    with tempfile.TemporaryDirectory() as folder:
        paths = write_input(folder, arguments.records)
        for name in arguments.programs:
            job = program(name, paths, arguments.mode)
            if arguments.code:
                print(*(vertex.source for vertex in job.vertices), sep="\n\n")
            compare(name, arguments, partial(run, job, folder), partial(by_hand, name, paths))


if __name__ == "__main__":
    main()
