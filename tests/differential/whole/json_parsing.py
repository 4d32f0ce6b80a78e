"""JSON texts become rows; broken ones go to a side output."""

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


import json

TEXTS = [
    '{"id": 1, "name": "a", "score": 1.5}',
    "broken",
    '{"id": 2, "name": "b"}',
    '{"id": 3, "name": null, "score": 2}',
]
BROKEN = OutputTag("broken", Types.STRING())
ITEM = Types.ROW_NAMED(["id", "name", "score"], [Types.INT(), Types.STRING(), Types.DOUBLE()])


class Parse(ProcessFunction):
    def process_element(self, value, ctx):
        try:
            item = json.loads(value)
        except ValueError:
            yield BROKEN, value
            return
        yield Row(id=item["id"], name=item["name"], score=item.get("score"))


def build(env, out):
    items = env.from_collection(TEXTS, Types.STRING()).process(Parse(), output_type=ITEM)
    out(items, "items")
    out(items.get_side_output(BROKEN), "broken")
