"""Orders meet the customers' countries; both wait for the other in state."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ReduceFunction,
)
from pyflink.datastream.functions import (
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from pyflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from pyflink.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)


ORDERS = [
    (1, "ann", 30.5),
    (2, "bob", 12.0),
    (1, "ann", 30.5),
    (3, "ann", 7.25),
    (2, "bob", 12.0),
    (4, "eve", 99.0),
]
ORDER = Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE()])

COUNTRIES = [("ann", "SE"), ("bob", "FR")]


class Enrich(KeyedCoProcessFunction):
    def open(self, ctx):
        self.orders = ctx.get_list_state(
            ListStateDescriptor(
                "orders", Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE()])
            )
        )
        self.country = ctx.get_state(ValueStateDescriptor("country", Types.STRING()))

    def process_element1(self, value, ctx):
        country = self.country.value()
        if country is None:
            self.orders.add(value)
        else:
            yield Row(value[0], country, value[2])

    def process_element2(self, value, ctx):
        self.country.update(value[1])
        for order in self.orders.get():
            yield Row(order[0], value[1], order[2])
        self.orders.clear()


def build(env, out):
    orders = env.from_collection(ORDERS, ORDER)
    countries = env.from_collection(COUNTRIES, Types.TUPLE([Types.STRING(), Types.STRING()]))
    enriched = (
        orders.connect(countries)
        .key_by(lambda o: o[1], lambda c: c[0], key_type=Types.STRING())
        .process(
            Enrich(),
            output_type=Types.ROW_NAMED(
                ["id", "country", "amount"], [Types.INT(), Types.STRING(), Types.DOUBLE()]
            ),
        )
    )
    out(enriched, "enriched")
