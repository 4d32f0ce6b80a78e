"""Scores: running ranks, boards per window by two stages of windows, ties, and a final board by an end timer."""

# mode: STREAMING
# parallelism: 1
import heapq
from itertools import groupby

from pyflink.common import Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
)
from pyflink.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows

SCORES = [(f"p{i * i % 5}", f"g{i % 2}", i * 37 % 20, i * 1100) for i in range(20)]


def score():
    return Types.ROW_NAMED(
        ["player", "game", "points", "at"],
        [Types.STRING(), Types.STRING(), Types.INT(), Types.LONG()],
    )


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value["at"]


class Best(AggregateFunction):
    """The three best scores."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        heapq.heappush(accumulator, (value.points, value.player))
        if len(accumulator) > 3:
            heapq.heappop(accumulator)
        return accumulator

    def get_result(self, accumulator):
        return sorted(accumulator, reverse=True)

    def merge(self, a, b):
        return heapq.nlargest(3, a + b)


class Board(ProcessWindowFunction):
    def process(self, key, context, elements):
        for rank, (points, group) in enumerate(
            groupby(next(iter(elements)), key=lambda pair: pair[0]), 1
        ):
            yield key, context.window().end, rank, points, [player for _, player in group]


class Total(KeyedProcessFunction):
    def open(self, ctx):
        self.totals = ctx.get_map_state(MapStateDescriptor("totals", Types.STRING(), Types.INT()))
        self.leader = ctx.get_state(ValueStateDescriptor("leader", Types.STRING()))

    def process_element(self, value, ctx):
        self.totals.put(value.player, (self.totals.get(value.player) or 0) + value.points)
        player, points = min(self.totals.items(), key=lambda pair: (-pair[1], pair[0]))
        if player != self.leader.value():
            yield f"{ctx.get_current_key()}: {player} leads with {points}, not {self.leader.value()}"
            self.leader.update(player)
        ctx.timer_service().register_event_time_timer(9_000_000_000_000)

    def on_timer(self, timestamp, ctx):
        board = sorted(self.totals.items(), key=lambda pair: (-pair[1], pair[0]))
        yield from (
            f"{ctx.get_current_key()} {rank}. {player} {points}"
            for rank, (player, points) in enumerate(board, 1)
        )


class Overall(ProcessAllWindowFunction):
    def process(self, context, elements):
        found = sorted(elements)
        yield context.window().start, context.window().end, found[-1][2:]


class Stamp(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


def build(env, out):
    scores = env.from_collection(
        [Row(player=p, game=g, points=n, at=t) for p, g, n, t in SCORES], score()
    )
    timed = scores.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_minutes(2)
        ).with_timestamp_assigner(At())
    )
    out(timed.key_by(lambda s: s.game).process(Total(), Types.STRING()), "totals")
    for name, assigner in {
        "tumbling": TumblingEventTimeWindows.of(Time.seconds(5)),
        "sliding": SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(3)),
    }.items():
        boards = (
            timed.key_by(lambda s: s.game, Types.STRING())
            .window(assigner)
            .aggregate(Best(), Board())
        )
        out(boards, f"boards {name}")
        out(boards.process(Stamp()), f"stamps {name}")
        out(
            boards.window_all(TumblingEventTimeWindows.of(Time.seconds(10))).process(Overall()),
            f"overall {name}",
        )
        out(
            boards.key_by(lambda b: b[2])
            .window(TumblingEventTimeWindows.of(Time.seconds(15)))
            .reduce(
                lambda a, b: (
                    "".join(sorted(a[0] + b[0])),
                    b[1],
                    a[2],
                    a[3] + b[3],
                    sorted({*a[4], *b[4]}),
                )
            ),
            f"twice {name}",
        )
    sums = (
        timed.key_by(lambda s: (s.player, s.game))
        .window(TumblingEventTimeWindows.of(Time.seconds(5)))
        .reduce(
            lambda a, b: Row(
                player=a.player, game=a.game, points=a.points + b.points, at=max(a.at, b.at)
            )
        )
    )
    out(sums, "sums")
    out(
        sums.map(lambda r: (r.game, r.points), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda v: v[0])
        .reduce(lambda a, b: (a[0], 0)),
        "reduced",
    )
    out(timed.key_by(lambda s: s.player).max("points"), "max by name")
    out(timed.key_by(lambda s: s.player).min_by("points"), "min by name")
    out(timed.key_by(lambda s: s.player).sum("points").map(lambda s: s.points), "sum by name")
