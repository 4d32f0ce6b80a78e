"""Clicks as named tuples and data classes: sessions, entry and exit pages, paths, bounce, and visits per day."""

# mode: STREAMING
# parallelism: 1
from types import SimpleNamespace
from datetime import datetime, timezone
from typing import Iterable, NamedTuple

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, MapFunction, ProcessWindowFunction
from pyflink.datastream.functions import AllWindowFunction, ProcessAllWindowFunction, WindowFunction
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)


def Click(user, page, at, ref=None):
    return SimpleNamespace(user=user, page=page, at=at, ref=ref)


class Visit(NamedTuple):
    user: str = ""
    pages: tuple = ()
    start: int = 2**60
    end: int = 0

    def plus(self, click):
        return self._replace(
            user=click.user,
            pages=(*self.pages, (click.at, click.page)),
            start=min(self.start, click.at),
            end=max(self.end, click.at),
        )


class Summary(NamedTuple):
    user: str
    first: str
    last: str
    seconds: float
    bounced: bool = False

    @property
    def path(self):
        return f"{self.first}>{self.last}"


RAW = [
    "u1 /home 1000",
    "u2 /home 2500 ad",
    "u1 /list 4000",
    "u1 /item?id=7 9000",
    "u2 /item?id=7 3000",
    "u3 /home 40000",
    "u1 /home 60000",
    "u1 /buy 71000",
    "u2 /buy 33500",
    "bad line here is",
    "u3 /list 52000 mail",
    "u1 /item?id=9 75000",
    "",
]


def parse(line):
    match line.split():
        case [user, page, at]:
            yield Click(user, page.partition("?")[0], int(at))
        case [user, page, at, ref] if at.isdigit():
            yield Click(user, page.partition("?")[0], int(at), ref)
        case []:
            return
        case words:
            yield Click("?", words[0], len(words))


class At(TimestampAssigner):
    def extract_timestamp(self, click, record_timestamp: int) -> int:
        return click.at


class Visits(AggregateFunction):
    def create_accumulator(self) -> dict:
        return Visit()._asdict()

    def add(self, value, accumulator: dict) -> dict:
        return Visit(**accumulator).plus(value)._asdict()

    def get_result(self, accumulator: dict) -> dict:
        accumulator = Visit(**accumulator)
        pages = [page for _, page in sorted(accumulator.pages)]
        found = Summary(
            accumulator.user,
            pages[0],
            pages[-1],
            (accumulator.end - accumulator.start) / 1000,
            len(pages) == 1,
        )
        return {**found._asdict(), "path": found.path}

    def merge(self, a: dict, b: dict) -> dict:
        a, b = Visit(**a), Visit(**b)
        return dict(
            user=a.user, pages=a.pages + b.pages, start=min(a.start, b.start), end=max(a.end, b.end)
        )


class WithWindow(ProcessWindowFunction[Summary, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Summary]
    ):
        for summary in elements:
            day = datetime.fromtimestamp(context.window().start / 1000, timezone.utc)
            yield (
                key,
                summary["path"],
                day.isoformat(),
                context.window().end - context.window().start,
                *list(summary.values())[3:],
            )


class Paths(WindowFunction):
    def apply(self, key, window, inputs):
        clicks = sorted(inputs, key=lambda c: c.at)
        return [" > ".join(f"{c.page}{'!' if c.ref else ''}" for c in clicks)]


class Everyone(ProcessAllWindowFunction):
    def process(self, context, elements):
        elements = list(elements)
        users = {click.user for click in elements}
        yield context.window().end, len(users), len(elements), [vars(c) for c in elements if c.ref]


class Number(MapFunction):
    def open(self, ctx):
        self.number = ctx.get_state(ValueStateDescriptor("number", Types.INT()))

    def map(self, value):
        self.number.update((self.number.value() or 0) + 1)
        return value | {"last": f"{value['last']} #{self.number.value()}"}


def build(env, out):
    lines = env.from_collection(RAW, Types.STRING())
    clicks = lines.flat_map(parse)
    out(clicks.map(lambda c: repr(c)), "clicks")
    timed = clicks.filter(lambda c: c.user != "?").assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_minutes(5)
        ).with_timestamp_assigner(At())
    )
    by_user = timed.key_by(lambda click: click.user)
    gap = EventTimeSessionWindows.with_gap(Time.seconds(10))
    out(by_user.window(gap).aggregate(Visits(), WithWindow()), "visits")
    out(by_user.window(gap).apply(Paths(), Types.STRING()), "paths")
    summaries = by_user.window(gap).aggregate(Visits())
    out(summaries.map(lambda s: (s["path"], s)), "summaries")
    out(
        summaries.key_by(lambda s: s["bounced"])
        .map(Number())
        .map(lambda s: sorted(s.items(), key=repr)),
        "numbered",
    )
    out(
        timed.window_all(TumblingEventTimeWindows.of(Time.seconds(30))).process(Everyone()),
        "everyone",
    )
    out(
        timed.window_all(SlidingEventTimeWindows.of(Time.minutes(1), Time.seconds(20)))
        .reduce(lambda a, b: Click(a.user, a.page + b.page, max(a.at, b.at)))
        .map(lambda c: (c.page, c.at)),
        "sliding",
    )
    out(timed.map(lambda c: Visit(c.user).plus(c)._asdict()), "visits as dictionaries")
