"""An A/B test: exposures and conversions, assigned by broadcast rules, counted in windows of all and of variants."""

# mode: BATCH
# parallelism: 1
import zlib
from collections import Counter, defaultdict

from pyflink.common import Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    OutputTag,
)
from pyflink.datastream.functions import (
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import TumblingEventTimeWindows

TESTS = [("button", ["red", "blue"], 50), ("price", ["low", "mid", "high"], 100)]
EVENTS = [(f"u{i * 7 % 11}", "view" if i % 3 else "buy", i * 400 % 9000, i / 8) for i in range(25)]
EVENT = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG(), Types.DOUBLE()])
RULES = MapStateDescriptor(
    "tests", Types.STRING(), Types.TUPLE([Types.LIST(Types.STRING()), Types.INT()])
)
LOG = MapStateDescriptor("log", Types.INT(), Types.STRING())
NOT_IN = OutputTag("not in", Types.ROW([Types.STRING(), Types.STRING()]))


class Millis(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


class Assign(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        rules = ctx.get_broadcast_state(RULES)
        for test in sorted(rules):
            variants, percent = rules.get(test)
            bucket = zlib.crc32(f"{test}/{value[0]}".encode()) % 100
            if bucket < percent:
                yield Row(
                    test=test,
                    variant=variants[bucket % len(variants)],
                    user=value[0],
                    kind=value[1],
                    worth=value[3],
                )
            else:
                yield NOT_IN, Row(test, value[0])

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        ctx.get_broadcast_state(RULES).put(value[0], (value[1], value[2]))
        ctx.get_broadcast_state(LOG).put(len(list(ctx.get_broadcast_state(LOG).keys())), value[0])
        yield NOT_IN, Row("rule", value[0])


class PerUser(KeyedBroadcastProcessFunction):
    def open(self, ctx):
        self.seen = ctx.get_list_state(ListStateDescriptor("seen", Types.STRING()))

    def process_element(self, value, ctx):
        self.seen.add(value[1])
        count = Counter(self.seen.get())
        yield (
            ctx.get_current_key(),
            dict(sorted(count.items())),
            sorted(k for k, _ in ctx.get_broadcast_state(RULES).items()),
        )

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put_all([(value[0], (value[1], value[2]))])


class Rates(AggregateFunction):
    def create_accumulator(self):
        return defaultdict(lambda: [0, 0])

    def add(self, value, accumulator):
        accumulator[value.variant][value.kind == "buy"] += 1
        return accumulator

    def get_result(self, accumulator):
        return {
            variant: buys / (views + buys) for variant, (views, buys) in sorted(accumulator.items())
        }

    def merge(self, a, b):
        for variant, (views, buys) in b.items():
            a[variant][0] += views
            a[variant][1] += buys
        return a


class Plain(Rates):
    def create_accumulator(self):
        return {}

    def add(self, value, accumulator):
        accumulator.setdefault(value.variant, [0, 0])[value.kind == "buy"] += 1
        return accumulator


class Named(ProcessWindowFunction):
    def process(self, key, context, elements):
        (rates,) = elements
        yield key, context.window().start, *sorted(rates.items())


def build(env, out):
    events = env.from_collection(EVENTS, EVENT).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_minutes(1)
        ).with_timestamp_assigner(Millis())
    )
    tests = env.from_collection(
        TESTS, Types.TUPLE([Types.STRING(), Types.LIST(Types.STRING()), Types.INT()])
    )
    rules = tests.broadcast(RULES, LOG)
    row = Types.ROW_NAMED(
        ["test", "variant", "user", "kind", "worth"],
        [Types.STRING(), Types.STRING(), Types.STRING(), Types.STRING(), Types.DOUBLE()],
    )
    assigned = events.connect(rules).process(Assign(), row)
    out(assigned, "assigned")
    out(assigned.get_side_output(NOT_IN), "not in")
    out(events.key_by(lambda v: v[0]).connect(tests.broadcast(RULES)).process(PerUser()), "users")
    worth = assigned.map(
        lambda r: (r.test + r.variant, r.worth), Types.TUPLE([Types.STRING(), Types.DOUBLE()])
    )
    out(worth.key_by(lambda v: v[0], Types.STRING()).sum(1), "worth")
    out(assigned.key_by(lambda r: r.test).max_by("worth"), "best")
    out(
        assigned.key_by(
            lambda r: Row(r.test, r.variant), Types.ROW([Types.STRING(), Types.STRING()])
        ).min("worth"),
        "least",
    )
