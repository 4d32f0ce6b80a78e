"""Count windows that overlap, follow each other, or leave gaps."""

# mode: STREAMING
# parallelism: 1
import datetime
from decimal import Decimal

from pyflink.common import Duration, Instant, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import *
from pyflink.datastream.functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from pyflink.datastream.state import *
from pyflink.datastream.window import *


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def late():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(60))
    return strategy.with_timestamp_assigner(At())


def build(env, out):
    s = env.from_collection(
        [("a", i) for i in range(7)] + [("b", i) for i in range(3)],
        Types.TUPLE([Types.STRING(), Types.INT()]),
    )
    k = s.key_by(lambda v: v[0])

    class W(WindowFunction):
        def apply(self, key, window, inputs):
            yield key, window.id, [v[1] for v in inputs]

    class PC(ProcessWindowFunction):
        def process(self, key, ctx, elements):
            yield key, ctx.window().id, ctx.window().max_timestamp(), [v[1] for v in elements]

    out(k.count_window(3).apply(W()), "c3")
    out(k.count_window(3, 2).apply(W()), "c3,2")
    out(k.count_window(3, 2).process(PC()), "c3,2p")
    out(k.count_window(2, 3).process(PC()), "c2,3")
    out(k.count_window(1).reduce(lambda a, b: (a[0], a[1] + b[1])), "c1")
    out(k.count_window(2).reduce(lambda a, b: (a[0], a[1] + b[1])), "red")
    out(k.count_window(4, 2).reduce(lambda a, b: (a[0], a[1] + b[1])), "red slide")
    out(k.window(CountTumblingWindowAssigner.of(2)).apply(W()), "assigner")
    out(k.window(CountSlidingWindowAssigner.of(4, 2)).apply(W()), "assigner s")

    class A(AggregateFunction):
        def create_accumulator(self):
            return [0, []]

        def add(self, v, acc):
            acc[0] += v[1]
            acc[1].append(v[1])
            return acc

        def get_result(self, acc):
            return repr(acc)

        def merge(self, a, b):
            return [a[0] + b[0], a[1] + b[1]]

    out(
        k.count_window(3).aggregate(
            A(), accumulator_type=Types.PICKLED_BYTE_ARRAY(), output_type=Types.STRING()
        ),
        "agg",
    )
    out(
        k.count_window(3).aggregate(
            A(),
            window_function=type(
                "X", (ProcessWindowFunction,), {"process": lambda s, key, c, el: [(key, list(el))]}
            )(),
        ),
        "agg w",
    )
    out(
        k.count_window(3).reduce(
            lambda a, b: (a[0], a[1] + b[1]),
            window_function=type(
                "X", (WindowFunction,), {"apply": lambda s, key, c, el: [(key, list(el))]}
            )(),
        ),
        "red w",
    )
    out(
        k.count_window(3).reduce(
            lambda a, b: (a[0], a[1] + b[1]),
            window_function=type(
                "X", (WindowFunction,), {"apply": lambda s, key, c, el: [(key, str(list(el)))]}
            )(),
            output_type=Types.TUPLE([Types.STRING(), Types.STRING()]),
        ),
        "red w t",
    )
    out(
        s.window_all(CountTumblingWindowAssigner.of(4)).process(
            type("X", (ProcessAllWindowFunction,), {"process": lambda s, c, el: [list(el)]})()
        ),
        "all",
    )
    out(
        s.window_all(CountTumblingWindowAssigner.of(4)).reduce(lambda a, b: (a[0] + b[0], a[1])),
        "all red",
    )
    out(
        s.window_all(CountTumblingWindowAssigner.of(4)).aggregate(A(), output_type=Types.STRING()),
        "all agg",
    )
