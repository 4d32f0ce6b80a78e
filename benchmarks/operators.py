"""Compares windows, broadcast state, side outputs and two inputs as PyFlink users write them with hand-written loops.

    python -m benchmarks.operators [--records 200000] [--reps 3] [--mode BATCH] [sessions counts rules limits sides inputs rows totals recent expires]

    sessions    number and total price of the clicks in a user's session: a session window with a reduce
    counts      total price of each five clicks of a user: a count window with a reduce
    rules       prices multiplied by a factor from a broadcast stream
    limits      the limits from a broadcast stream that a user's price exceeds: a loop over the state
    sides       odd numbers go to a side output, which has its own map
    inputs      two keyed streams, each with its own map
    rows        Rows with field names, keyed by two fields: a reduce
    totals      the running total of a user: a ValueState that holds a Row
    recent      total of a user's last five prices: a ListState, whose descriptor is a module constant
    expires     the running count of a user: a ValueState with a time to live (TTL) of one hour

All run in one process. Prints CPU microseconds per record, and the ratio of the loop's time to opchain's: above 1
opchain is faster. The loops call the same functions, and pickle 4,096 records at a time between two partitions. They
ignore event time.
"""
# ruff: noqa: ARG002 - the methods' arguments are PyFlink's

from __future__ import annotations

import argparse
import json
import tempfile
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.environment import environment
from benchmarks.in_process import exchanged, job_of, lines, read, run
from benchmarks.stateful import DISORDER, GAP, Times, compare, write_input
from benchmarks.tally import tallied
from opchain.common import Duration, Row, Time, Types, WatermarkStrategy
from opchain.datastream import OutputTag
from opchain.datastream.functions import (
    BroadcastProcessFunction,
    CoMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from opchain.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from opchain.datastream.window import EventTimeSessionWindows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain import DataStream, StreamExecutionEnvironment

Pair = tuple[Any, int]
CLICKS = 5
KEYS = 1000
LIMIT_PAIRS = [(f"limit {number}", 1_250 * number) for number in range(1, 9)]
FACTOR = MapStateDescriptor("factor", Types.STRING(), Types.LONG())
LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.LONG())
RECENT = ListStateDescriptor("recent", Types.LONG())
ODD = OutputTag("odd", Types.TUPLE([Types.LONG(), Types.LONG()]))


CLICK = Types.ROW_NAMED(["user", "page", "price"], [Types.LONG(), Types.STRING(), Types.LONG()])
TOTAL = Types.ROW([Types.INT(), Types.INT()])


def click_row(line: str) -> Row:
    """A click as a Row with field names."""
    click = json.loads(line)
    return Row(user=click["user"], page=click["page"], price=click["price"])


def priced(click: Any) -> Pair:
    """The user and the price of a click."""
    return click["user"], click["price"]


def keyed(number: int) -> Pair:
    """A number with its key."""
    return number % KEYS, number


def by_key(pair: Pair) -> Any:
    """The key."""
    return pair[0]


def added(one: Pair, other: Pair) -> Pair:
    """Both prices."""
    return one[0], one[1] + other[1]


class Factored(BroadcastProcessFunction):
    """Multiplies prices by the factor in the broadcast state."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        """Multiplies."""
        factor = ctx.get_broadcast_state(FACTOR).get("price")
        yield value["user"], value["price"] * (1 if factor is None else factor)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        """Sets the factor."""
        ctx.get_broadcast_state(FACTOR).put(value[0], value[1])


class Limits(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    """Compares prices with all limits."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        """Compares."""
        for name, limit in ctx.get_broadcast_state(LIMITS).items():
            if value["price"] > limit:
                yield name, limit

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        """Sets a limit."""
        ctx.get_broadcast_state(LIMITS).put(value[0], value[1])


class Split(ProcessFunction):
    """Sends odd numbers to the side output."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        """Splits."""
        if value[1] % 2:
            yield ODD, value
        else:
            yield value


class Signed(CoMapFunction[Any, Any, Any]):
    """Negates the numbers of the second input."""

    def map1(self, value: Any) -> Any:
        """Adds one."""
        return value[0], value[1] + 1

    def map2(self, value: Any) -> Any:
        """Negates."""
        return value[0], -value[1]


class Totals(KeyedProcessFunction[Any, Any, Any]):
    """The number and the total price of a user's clicks so far."""

    def open(self, runtime_context: Any) -> None:
        """Gets the state."""
        self.total = runtime_context.get_state(ValueStateDescriptor("total", TOTAL))

    def process_element(self, value: Any, ctx: Any) -> Any:
        """Adds up."""
        total = self.total.value()
        if total is None:
            total = Row(0, 0)
        total[0] += 1
        total[1] += value["price"]
        self.total.update(total)
        yield ctx.get_current_key(), total[1]


class Recent(KeyedProcessFunction[Any, Any, Any]):
    """The last prices of a user."""

    def open(self, runtime_context: Any) -> None:
        """Gets the state."""
        self.recent = runtime_context.get_list_state(RECENT)

    def process_element(self, value: Any, ctx: Any) -> Any:
        """Keeps five prices."""
        recent = list(self.recent)
        recent.append(value["price"])
        recent = recent[-CLICKS:]
        self.recent.update(recent)
        yield value["user"], sum(recent)


class Visits(KeyedProcessFunction[Any, Any, Any]):
    """The number of a user's clicks so far. It starts again after an hour without a click."""

    def open(self, runtime_context: Any) -> None:
        """Gets the state."""
        visits = ValueStateDescriptor("visits", Types.LONG())
        visits.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.visits = runtime_context.get_state(visits)

    def process_element(self, value: Any, ctx: Any) -> Any:
        """Counts."""
        visits = self.visits.value()
        visits = 1 if visits is None else visits + 1
        self.visits.update(visits)
        yield value["user"], visits


def _clicks(env: StreamExecutionEnvironment, paths: list[str]) -> DataStream[Any]:
    return lines(env, paths).map(json.loads)


def _sessions(env: StreamExecutionEnvironment, paths: list[str], _: int) -> DataStream[Any]:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DISORDER))
    clicks = _clicks(env, paths).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(Times())
    )
    windows = EventTimeSessionWindows.with_gap(Time.milliseconds(GAP))
    return clicks.map(priced).key_by(by_key).window(windows).reduce(added)


def _sessions_by_hand(paths: list[str], _: int) -> Iterator[int]:
    sent = (
        ((click["ts"], priced(click)) for click in map(json.loads, text)) for text in read(paths)
    )
    for partition in exchanged(sent, lambda timed: by_key(timed[1])):
        sessions: dict[Any, tuple[int, Pair]] = {}
        for at, pair in partition:
            last, price = sessions.get(pair[0], (at, None))
            if price is not None and at - last > GAP:
                yield price[1]
                price = None
            sessions[pair[0]] = max(last, at), pair if price is None else added(price, pair)
        for _last, price in sessions.values():
            yield price[1]


def _counts(env: StreamExecutionEnvironment, paths: list[str], _: int) -> DataStream[Any]:
    return _clicks(env, paths).map(priced).key_by(by_key).count_window(CLICKS).reduce(added)


def _counts_by_hand(paths: list[str], _: int) -> Iterator[int]:
    sent = (map(priced, map(json.loads, text)) for text in read(paths))
    for partition in exchanged(sent, by_key):
        windows: dict[Any, tuple[int, Pair]] = {}
        for pair in partition:
            count, price = windows.get(pair[0], (0, None))
            price = pair if price is None else added(price, pair)
            if count + 1 == CLICKS:
                del windows[pair[0]]
                yield price[1]
            else:
                windows[pair[0]] = count + 1, price


def _rules(env: StreamExecutionEnvironment, paths: list[str], _: int) -> DataStream[Any]:
    factors = env.from_collection([("price", 1)]).broadcast(FACTOR)
    return _clicks(env, paths).connect(factors).process(Factored())


def _rules_by_hand(paths: list[str], _: int) -> Iterator[int]:
    factors = {"price": 1}
    for text in read(paths):
        for click in map(json.loads, text):
            factor = factors.get("price")
            yield (click["user"], click["price"] * (1 if factor is None else factor))[1]


def _limits(env: StreamExecutionEnvironment, paths: list[str], _: int) -> DataStream[Any]:
    limits = env.from_collection(LIMIT_PAIRS).broadcast(LIMITS)
    return _clicks(env, paths).key_by(lambda click: click["user"]).connect(limits).process(Limits())


def _limits_by_hand(paths: list[str], _: int) -> Iterator[int]:
    limits = dict(LIMIT_PAIRS)
    sent = (map(json.loads, text) for text in read(paths))
    for partition in exchanged(sent, lambda click: click["user"]):
        for click in partition:
            for name, limit in limits.items():
                if click["price"] > limit:
                    yield (name, limit)[1]


def _sides(env: StreamExecutionEnvironment, _: list[str], records: int) -> DataStream[Any]:
    split = env.from_sequence(0, records - 1).map(keyed).process(Split())
    odd = split.get_side_output(ODD).map(lambda pair: (pair[0], -pair[1]))
    return split.map(lambda pair: (pair[0], pair[1] + 1)).union(odd)


def _sides_by_hand(_: list[str], records: int) -> Iterator[int]:
    split = Split()
    for number in range(records):
        for result in split.process_element(keyed(number), None):
            if isinstance(result[0], OutputTag):
                yield (result[1][0], -result[1][1])[1]
            else:
                yield (result[0], result[1] + 1)[1]


def _inputs(env: StreamExecutionEnvironment, _: list[str], records: int) -> DataStream[Any]:
    first, second = (
        env.from_sequence(0, records // 2 - 1).map(keyed).key_by(by_key) for _input in range(2)
    )
    return first.connect(second).map(Signed())


def _inputs_by_hand(_: list[str], records: int) -> Iterator[int]:
    signed, half = Signed(), records // 2
    for function in (signed.map1, signed.map2):
        parts = (map(keyed, range(begin, begin + half // 2)) for begin in (0, half // 2))
        for partition in exchanged(parts, by_key):
            for pair in partition:
                yield function(pair)[1]


def _rows(env: StreamExecutionEnvironment, paths: list[str], _: int) -> DataStream[Any]:
    clicks = lines(env, paths).map(click_row, CLICK).filter(lambda row: row.price > 100)
    sums = clicks.key_by(lambda row: (row.user, row.page)).reduce(
        lambda a, b: Row(user=a.user, page=b.page, price=a.price + b.price)
    )
    return sums.map(lambda row: (row.user, row.price))


def _rows_by_hand(paths: list[str], _: int) -> Iterator[int]:
    sent = (
        (
            (click["user"], click["page"], click["price"])
            for click in map(json.loads, text)
            if click["price"] > 100
        )
        for text in read(paths)
    )
    for partition in exchanged(sent, lambda row: row[:2]):
        sums: dict[Any, int] = {}
        for user, page, price in partition:
            sums[user, page] = total = sums.get((user, page), 0) + price
            yield (user, total)[1]


def _totals(env: StreamExecutionEnvironment, paths: list[str], _: int) -> DataStream[Any]:
    return _clicks(env, paths).key_by(lambda click: click["user"]).process(Totals())


def _totals_by_hand(paths: list[str], _: int) -> Iterator[int]:
    sent = (map(json.loads, text) for text in read(paths))
    for partition in exchanged(sent, lambda click: click["user"]):
        totals: dict[Any, list[int]] = {}
        for click in partition:
            total = totals.setdefault(click["user"], [0, 0])
            total[0] += 1
            total[1] += click["price"]
            yield (click["user"], total[1])[1]


def _recent(env: StreamExecutionEnvironment, paths: list[str], _: int) -> DataStream[Any]:
    return _clicks(env, paths).key_by(lambda click: click["user"]).process(Recent())


def _recent_by_hand(paths: list[str], _: int) -> Iterator[int]:
    sent = (map(json.loads, text) for text in read(paths))
    for partition in exchanged(sent, lambda click: click["user"]):
        prices: dict[Any, list[int]] = {}
        for click in partition:
            recent = prices.setdefault(click["user"], [])
            recent.append(click["price"])
            del recent[:-CLICKS]
            yield (click["user"], sum(recent))[1]


def _expires(env: StreamExecutionEnvironment, paths: list[str], _: int) -> DataStream[Any]:
    return _clicks(env, paths).key_by(lambda click: click["user"]).process(Visits())


def _expires_by_hand(paths: list[str], _: int) -> Iterator[int]:
    sent = (map(json.loads, text) for text in read(paths))
    for partition in exchanged(sent, lambda click: click["user"]):
        visits: dict[Any, tuple[int, float]] = {}
        for click in partition:
            now = time.time()
            count, last = visits.get(click["user"], (0, now))
            count = count + 1 if last > now - 3600 else 1
            visits[click["user"]] = count, now
            yield (click["user"], count)[1]


PROGRAMS: dict[str, tuple[Callable[..., DataStream[Any]], Callable[..., Iterator[int]]]] = {
    "sessions": (_sessions, _sessions_by_hand),
    "counts": (_counts, _counts_by_hand),
    "rules": (_rules, _rules_by_hand),
    "limits": (_limits, _limits_by_hand),
    "sides": (_sides, _sides_by_hand),
    "inputs": (_inputs, _inputs_by_hand),
    "rows": (_rows, _rows_by_hand),
    "totals": (_totals, _totals_by_hand),
    "recent": (_recent, _recent_by_hand),
    "expires": (_expires, _expires_by_hand),
}


def main() -> None:
    """Measures the programs and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--records", type=int, default=200_000, help="a multiple of 4")
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--mode", choices=["STREAMING", "BATCH"], default="STREAMING")
    arguments = parser.parse_args()
    records = arguments.records
    with tempfile.TemporaryDirectory() as folder:
        paths = write_input(folder, records)
        for name in arguments.programs:
            draw, loop = PROGRAMS[name]
            env = environment(execution__runtime_mode=arguments.mode)
            job = job_of(draw(env, paths, records), folder, 1)
            compare(
                name,
                arguments,
                partial(run, job, folder),
                lambda loop=loop: tallied(loop(paths, records)),  # type: ignore[misc]
            )


if __name__ == "__main__":
    main()
