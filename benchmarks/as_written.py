"""Compares twelve programs as PyFlink users write them with hand-written loops over the same functions, in one process.

    python -m benchmarks.as_written [--records 200000] [--reps 3] [--mode BATCH] [--code] [NAMES ...]

    dedup        drops orders whose id was seen before: a ValueState; few ids occur twice
    fraud        a small payment, then a large one within a minute: two ValueStates, a timer that is deleted
    inactive     users without an event for a minute: a dataclass in a ValueState, a timer for each event
    hot          the three most viewed pages of each minute: a window of counts, then a ListState and timers
    errors       lines that do not parse go to a side output, the others are Rows
    rules        payments above the limit of their country: the limits are broadcast state
    enrich       payments joined with the last address of the user: a co-process function with a MapState
    logs         a regular expression, a generator, and counts of status and path with `sum`
    sensors      named tuples of CSV lines, the mean of each hundred: an AggregateFunction over a count window
    visits       sessions of dataclasses, reduced
    pages        pages of each user in a MapState
    spending     the sum of each user's Rows, in a ReducingState

Prints CPU microseconds per record, and the ratio of the loop's time to opchain's: above 1 opchain is faster. The loops
keep state in dictionaries and pickle 4,096 records at a time between two partitions. They ignore event time.
"""
# ruff: noqa: ARG002, D101, D102, D103, PLW0108 - written as PyFlink's users write

from __future__ import annotations

import json
import random
import re
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.environment import PARALLELISM, environment
from benchmarks.in_process import exchanged, job_of, lines, read, run
from benchmarks.stateful import compare, parsed_arguments
from benchmarks.tally import tallied
from opchain.common import Duration, Row, Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream import OutputTag
from opchain.datastream.functions import (
    AggregateFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from opchain.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from opchain.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opchain import DataStream, StreamExecutionEnvironment

MINUTE, DISORDER = 60_000, 2_000
COUNTRIES = ["DE", "FR", "IT", "ES", "PL", "NL", "BE", "AT"]


class Input(NamedTuple):
    """Files of JSON, of log lines and of CSV."""

    events: list[str]
    logs: list[str]
    csv: list[str]


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value["ts"])


def timed(stream: DataStream[Any]) -> DataStream[Any]:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DISORDER))
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(EventTime()))


def events(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    return lines(env, given.events).map(lambda line: json.loads(line))


def events_by_hand(given: Input, key: Callable[[Any], Any]) -> Iterator[Iterator[Any]]:
    return exchanged((map(json.loads, text) for text in read(given.events)), key)


# dedup ------------------------------------------------------------------------------------------------------------


class Deduplicate(KeyedProcessFunction[Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        if not self.seen.value():
            self.seen.update(True)
            yield value


def dedup(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    orders = events(env, given).key_by(lambda order: order["id"], key_type=Types.STRING())
    return orders.process(Deduplicate()).map(lambda order: order["amount"])


def dedup_by_hand(given: Input) -> Iterator[int]:
    for orders in events_by_hand(given, lambda order: order["id"]):
        seen = set()
        for order in orders:
            if order["id"] not in seen:
                seen.add(order["id"])
                yield order["amount"]


# fraud ------------------------------------------------------------------------------------------------------------

SMALL, LARGE = 300, 9_000


class FraudDetector(KeyedProcessFunction[Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.flag = runtime_context.get_state(ValueStateDescriptor("flag", Types.BOOLEAN()))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        if self.flag.value() is not None:
            if value["amount"] > LARGE:
                yield Row(ctx.get_current_key(), value["amount"])
            self.clean_up(ctx)
        if value["amount"] < SMALL:
            self.flag.update(True)
            timer = ctx.timestamp() + MINUTE
            ctx.timer_service().register_event_time_timer(timer)
            self.timer.update(timer)

    def on_timer(self, timestamp: int, ctx: Any) -> None:
        self.timer.clear()
        self.flag.clear()

    def clean_up(self, ctx: Any) -> None:
        timer = self.timer.value()
        ctx.timer_service().delete_event_time_timer(timer)
        self.timer.clear()
        self.flag.clear()


def fraud(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    payments = timed(events(env, given)).key_by(lambda payment: payment["user"])
    return payments.process(
        FraudDetector(), output_type=Types.ROW([Types.INT(), Types.LONG()])
    ).map(lambda alert: alert[1])


def fraud_by_hand(given: Input) -> Iterator[int]:
    for payments in events_by_hand(given, lambda payment: payment["user"]):
        flags: dict[Any, int] = {}
        for payment in payments:
            until = flags.pop(payment["user"], None)
            if until is not None and payment["ts"] <= until and payment["amount"] > LARGE:
                yield payment["amount"]
            if payment["amount"] < SMALL:
                flags[payment["user"]] = payment["ts"] + MINUTE


# inactive ---------------------------------------------------------------------------------------------------------


@dataclass
class Activity:
    user: int
    clicks: int
    last_modified: int


class CountWithTimeout(KeyedProcessFunction[Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_state(
            ValueStateDescriptor("activity", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        current = self.state.value()
        if current is None:
            current = Activity(value["user"], 0, 0)
        current.clicks += 1
        current.last_modified = ctx.timestamp()
        self.state.update(current)
        ctx.timer_service().register_event_time_timer(current.last_modified + MINUTE)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        result = self.state.value()
        if result is not None and timestamp == result.last_modified + MINUTE:
            yield result.user, result.clicks


def inactive(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    clicks = timed(events(env, given)).key_by(lambda click: click["user"])
    return clicks.process(CountWithTimeout()).map(lambda found: found[1])


def inactive_by_hand(given: Input) -> Iterator[int]:
    for clicks in events_by_hand(given, lambda click: click["user"]):
        known: dict[Any, Activity] = {}
        for click in clicks:
            current = known.get(click["user"])
            if current is None:
                current = known[click["user"]] = Activity(click["user"], 0, 0)
            current.clicks += 1
            current.last_modified = click["ts"]
        for current in known.values():
            yield current.clicks


# hot --------------------------------------------------------------------------------------------------------------


class CountAgg(AggregateFunction[Any, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WindowResult(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[int]) -> Iterator[Any]:
        yield Row(page=key, window_end=context.window().end, count=next(iter(elements)))


class TopNHotPages(KeyedProcessFunction[Any, Any, Any]):
    def __init__(self, top: int) -> None:
        self.top = top

    def open(self, runtime_context: Any) -> None:
        self.pages = runtime_context.get_list_state(
            ListStateDescriptor("pages", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: Any, ctx: Any) -> None:
        self.pages.add(value)
        ctx.timer_service().register_event_time_timer(value["window_end"] + 1)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        pages = list(self.pages.get())
        self.pages.clear()
        pages.sort(key=lambda row: (-row["count"], row["page"]))
        for page in pages[: self.top]:
            yield page["page"], page["count"]


def hot(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    views = timed(events(env, given)).key_by(lambda view: view["page"])
    counted = views.window(TumblingEventTimeWindows.of(Duration.of_minutes(1))).aggregate(
        CountAgg(), WindowResult()
    )
    top = counted.key_by(lambda row: row["window_end"]).process(TopNHotPages(3))
    return top.map(lambda found: found[1])


def hot_by_hand(given: Input) -> Iterator[int]:
    add = CountAgg().add
    ends: dict[int, list[tuple[int, str]]] = {}
    for views in events_by_hand(given, lambda view: view["page"]):
        found: dict[tuple[str, int], int] = {}
        for view in views:
            place = view["page"], view["ts"] // MINUTE
            found[place] = add(view, found.get(place, 0))
        for (page, minute), count in found.items():
            ends.setdefault(minute, []).append((-count, page))
    for pages in ends.values():
        for count, _ in sorted(pages)[:3]:
            yield -count


# errors -----------------------------------------------------------------------------------------------------------

BAD = OutputTag("bad", Types.STRING())


class ParseLine(ProcessFunction[str, Any]):
    def process_element(self, value: str, ctx: Any) -> Any:
        try:
            user, temperature, at = value.split(",")
            row = Row(user, float(temperature), int(at))
        except ValueError as error:
            yield BAD, f"{value}: {error}"
            return
        yield row


def errors(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    kind = Types.ROW_NAMED(
        ["sensor", "value", "at"], [Types.STRING(), Types.DOUBLE(), Types.LONG()]
    )
    parsed = lines(env, given.csv).process(ParseLine(), output_type=kind)
    bad = parsed.get_side_output(BAD).map(lambda text: len(text))
    good = parsed.filter(lambda row: row.value >= 0).map(lambda row: row.at)
    return good.union(bad)


def errors_by_hand(given: Input) -> Iterator[int]:
    function = ParseLine()
    for text in read(given.csv):
        for line in text:
            for found in function.process_element(line.rstrip("\n"), None):
                if found.__class__ is tuple:
                    yield len(found[1])
                elif found[1] >= 0:
                    yield found[2]


# rules ------------------------------------------------------------------------------------------------------------

LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.LONG())


class AboveLimit(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        limit = ctx.get_broadcast_state(LIMITS).get(value["country"])
        if limit is not None and value["amount"] > limit:
            yield value["user"], value["amount"]

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(LIMITS).put(value[0], value[1])


def limit_of(number: int) -> tuple[str, int]:
    return COUNTRIES[number], 5_000 + number * 500


def rules(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    found = [limit_of(number) for number in range(len(COUNTRIES))]
    limits = env.from_collection(found, Types.TUPLE([Types.STRING(), Types.LONG()]))
    payments = events(env, given).key_by(lambda payment: payment["user"])
    return (
        payments.connect(limits.broadcast(LIMITS)).process(AboveLimit()).map(lambda pair: pair[1])
    )


def rules_by_hand(given: Input) -> Iterator[int]:
    limits = dict(map(limit_of, range(len(COUNTRIES))))
    for payments in events_by_hand(given, lambda payment: payment["user"]):
        for payment in payments:
            limit = limits.get(payment["country"])
            if limit is not None and payment["amount"] > limit:
                yield payment["amount"]


# enrich -----------------------------------------------------------------------------------------------------------


class Enrich(KeyedCoProcessFunction[Any, Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_map_state(
            MapStateDescriptor("last", Types.STRING(), Types.STRING())
        )
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element1(self, value: Any, ctx: Any) -> Any:
        count = self.count.value() or 0
        self.count.update(count + 1)
        yield value["user"], count, value["amount"]

    def process_element2(self, value: Any, ctx: Any) -> Any:
        self.last.put("page", value["page"])
        self.last.put("country", value["country"])


def enrich(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    found = events(env, given)
    payments = found.filter(lambda event: event["kind"] == "payment").key_by(lambda e: e["user"])
    clicks = found.filter(lambda event: event["kind"] == "click").key_by(lambda e: e["user"])
    return payments.connect(clicks).process(Enrich()).map(lambda row: row[1] + row[2])


def enrich_by_hand(given: Input) -> Iterator[int]:
    for found in events_by_hand(given, lambda event: event["user"]):
        counts: dict[Any, int] = {}
        pages: dict[Any, dict[str, str]] = {}
        for event in found:
            user = event["user"]
            if event["kind"] == "payment":
                count = counts.get(user) or 0
                counts[user] = count + 1
                yield count + event["amount"]
            elif event["kind"] == "click":
                last = pages.setdefault(user, {})
                last["page"] = event["page"]
                last["country"] = event["country"]


# logs -------------------------------------------------------------------------------------------------------------

LOG_LINE = re.compile(r'(\S+) \S+ \S+ \[[^\]]*\] "(\w+) (\S+)[^"]*" (\d{3}) (\d+)')


def parse_log(line: str) -> Iterator[tuple[str, int]]:
    match = LOG_LINE.match(line)
    if match is None:
        return
    status = match.group(4)
    path = match.group(3).split("?")[0]
    yield f"{status} {path}", int(match.group(5))


def logs(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    kind = Types.TUPLE([Types.STRING(), Types.LONG()])
    found = lines(env, given.logs).flat_map(parse_log, output_type=kind)
    return found.key_by(lambda pair: pair[0]).sum(1).map(lambda pair: pair[1])


def logs_by_hand(given: Input, mode: str) -> Iterator[int]:
    sent = ((pair for line in text for pair in parse_log(line)) for text in read(given.logs))
    for pairs in exchanged(sent, lambda pair: pair[0]):
        sums: dict[str, int] = {}
        for key, size in pairs:
            sums[key] = sums.get(key, 0) + size
            if mode == "STREAMING":
                yield sums[key]
        if mode == "BATCH":
            yield from sums.values()


# sensors ----------------------------------------------------------------------------------------------------------


class Reading(NamedTuple):
    sensor: str
    value: float
    at: int


def reading(line: str) -> Reading:
    sensor, value, at = line.split(",")
    return Reading(sensor, float(value), int(at))


class Mean(AggregateFunction[Reading, Any, Any]):
    def create_accumulator(self) -> Any:
        return 0, 0.0

    def add(self, value: Reading, accumulator: Any) -> Any:
        return accumulator[0] + 1, accumulator[1] + value.value

    def get_result(self, accumulator: Any) -> Any:
        return round(accumulator[1] / accumulator[0])

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


def is_complete(line: str) -> bool:
    return not line.endswith(",")


def sensors(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    readings = lines(env, given.csv).filter(is_complete).map(reading)
    return readings.key_by(lambda r: r.sensor).count_window(100).aggregate(Mean())


def sensors_by_hand(given: Input) -> Iterator[int]:
    mean = Mean()
    sent = (map(reading, filter(is_complete, map(str.rstrip, text))) for text in read(given.csv))
    for readings in exchanged(sent, lambda r: r.sensor):
        found: dict[str, Any] = {}
        for each in readings:
            held = found.get(each.sensor)
            held = mean.add(each, mean.create_accumulator() if held is None else held)
            if held[0] == 100:
                yield mean.get_result(held)
                held = None
            found[each.sensor] = held


# visits -----------------------------------------------------------------------------------------------------------


@dataclass
class Visit:
    user: int
    pages: int
    spent: int


def visit(event: dict[str, Any]) -> Visit:
    return Visit(user=event["user"], pages=1, spent=event["amount"])


class Together(ReduceFunction[Visit]):
    def reduce(self, value1: Visit, value2: Visit) -> Visit:
        return Visit(value1.user, value1.pages + value2.pages, value1.spent + value2.spent)


def visits(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    keyed = timed(events(env, given)).map(visit).key_by(lambda v: v.user)
    opened = keyed.window(EventTimeSessionWindows.with_gap(Duration.of_seconds(30)))
    return opened.reduce(Together()).map(lambda v: v.spent)


def visits_by_hand(given: Input) -> Iterator[int]:
    together = Together().reduce
    sent = (((visit(e), e["ts"]) for e in map(json.loads, text)) for text in read(given.events))
    for found in exchanged(sent, lambda pair: pair[0].user):
        sessions: dict[int, list[Any]] = {}
        for each, at in found:
            open_ones = sessions.setdefault(each.user, [])
            for session in reversed(open_ones):
                if session[0] - 30_000 <= at <= session[1] + 30_000:
                    session[0], session[1] = min(session[0], at), max(session[1], at)
                    session[2] = together(session[2], each)
                    break
            else:
                open_ones.append([at, at, each])
        for open_ones in sessions.values():
            for session in open_ones:
                yield session[2].spent


# pages ------------------------------------------------------------------------------------------------------------


class PagesOfUser(KeyedProcessFunction[Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        descriptor = MapStateDescriptor("pages", Types.STRING(), Types.LONG())
        self.pages = runtime_context.get_map_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Any:
        page = value["page"]
        count = 1
        if self.pages.contains(page):
            count = self.pages.get(page) + 1
        self.pages.put(page, count)
        yield {"user": value["user"], "page": page, "count": count}


def pages(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    keyed = events(env, given).key_by(lambda event: event["user"])
    return keyed.process(PagesOfUser()).map(lambda found: found["count"])


def pages_by_hand(given: Input) -> Iterator[int]:
    for found in events_by_hand(given, lambda event: event["user"]):
        users: dict[Any, dict[str, int]] = {}
        for event in found:
            known = users.setdefault(event["user"], {})
            page = event["page"]
            known[page] = known[page] + 1 if page in known else 1
            yield known[page]


# spending ---------------------------------------------------------------------------------------------------------


class Spending(KeyedProcessFunction[Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        descriptor = ReducingStateDescriptor("spent", lambda a, b: a + b, Types.LONG())
        self.spent = runtime_context.get_reducing_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.spent.add(value.amount)
        yield Row(user=value.user, spent=self.spent.get())


def row_of(event: dict[str, Any]) -> Row:
    return Row(user=event["user"], amount=event["amount"])


def spending(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    kind = Types.ROW_NAMED(["user", "amount"], [Types.LONG(), Types.LONG()])
    rows = events(env, given).map(row_of, output_type=kind)
    keyed = rows.key_by(lambda row: row.user, key_type=Types.LONG())
    return keyed.process(Spending()).map(lambda row: row.spent)


def spending_by_hand(given: Input) -> Iterator[int]:
    sent = (map(row_of, map(json.loads, text)) for text in read(given.events))
    for rows in exchanged(sent, lambda row: row.user):
        spent: dict[Any, int] = {}
        for row in rows:
            spent[row.user] = spent.get(row.user, 0) + row.amount
            yield spent[row.user]


# Measuring --------------------------------------------------------------------------------------------------------

PROGRAMS: dict[str, tuple[Any, Any]] = {
    "dedup": (dedup, dedup_by_hand),
    "fraud": (fraud, fraud_by_hand),
    "inactive": (inactive, inactive_by_hand),
    "hot": (hot, hot_by_hand),
    "errors": (errors, errors_by_hand),
    "rules": (rules, rules_by_hand),
    "enrich": (enrich, enrich_by_hand),
    "logs": (logs, logs_by_hand),
    "sensors": (sensors, sensors_by_hand),
    "visits": (visits, visits_by_hand),
    "pages": (pages, pages_by_hand),
    "spending": (spending, spending_by_hand),
}


def write_input(folder: str, records: int) -> Input:
    """Writes the input files: events 5 ms apart, out of order by up to 2 s."""
    draw = random.Random(11)
    given = Input([], [], [])
    for part in range(PARALLELISM):
        for kind, paths in given._asdict().items():
            paths.append(str(Path(folder) / f"{kind}-{part}.txt"))
        texts: list[list[str]] = [[], [], []]
        for number in range(records // PARALLELISM):
            event = {
                "id": f"o-{part}-{number if draw.random() < 0.97 else number // 2}",
                "user": int(draw.random() ** 2 * 2000),
                "kind": "click" if draw.random() < 0.5 else "payment",
                "page": f"/page/{draw.randrange(50)}",
                "amount": draw.randrange(10_000),
                "country": draw.choice(COUNTRIES),
                "ts": 1_000_000 + number * 5 - draw.randrange(DISORDER),
            }
            texts[0].append(json.dumps(event))
            path = f"/items/{draw.randrange(200)}?page={draw.randrange(9)}"
            status = draw.choice([200, 200, 200, 404, 500])
            texts[1].append(
                f'10.0.0.{draw.randrange(255)} - - [24/Nov/2026:10:00:00 +0000] "GET {path} HTTP/1.1" '
                f"{status} {draw.randrange(20_000)}"
            )
            at = event["ts"] if draw.random() < 0.99 else ""
            texts[2].append(f"sensor-{draw.randrange(300)},{draw.random() * 40:.2f},{at}")
        for paths, found in zip(given, texts, strict=True):
            Path(paths[part]).write_text("\n".join(found) + "\n", encoding="utf-8")
    return given


def main() -> None:
    """Measures the programs and prints a line for each."""
    arguments = parsed_arguments(__doc__, list(PROGRAMS))
    with tempfile.TemporaryDirectory() as folder:
        given = write_input(folder, arguments.records)
        for name in arguments.programs:
            draw, loop = PROGRAMS[name]
            env = environment(execution__runtime_mode=arguments.mode)
            job = job_of(draw(env, given), folder, None)
            if arguments.code:
                print(*(vertex.source for vertex in job.vertices), sep="\n\n")
            by_hand = (
                partial(loop, given, arguments.mode) if name == "logs" else partial(loop, given)
            )
            compare(
                name,
                arguments,
                partial(run, job, folder),
                lambda by_hand=by_hand: tallied(by_hand()),  # type: ignore[misc]
            )


if __name__ == "__main__":
    main()
