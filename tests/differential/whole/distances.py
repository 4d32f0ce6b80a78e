"""The way of each vehicle, its fastest leg and its mean speed, in reducing and aggregating state."""

# mode: STREAMING
# parallelism: 2
import math

from pyflink.common import Types
from pyflink.datastream import AggregateFunction, KeyedProcessFunction, ReduceFunction
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

POSITIONS = [
    {"car": 7, "t": 0, "x": 0.0, "y": 0.0},
    {"car": 7, "t": 10, "x": 3.0, "y": 4.0},
    {"car": 9, "t": 1, "x": 1.0, "y": 1.0},
    {"car": 7, "t": 20, "x": 3.0, "y": 16.0},
    {"car": 9, "t": 4, "x": 1.0, "y": 2.0},
    {"car": 7, "t": 21, "x": 3.0, "y": 16.0},
]


class Longest(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2)


class Mean(AggregateFunction):
    def create_accumulator(self):
        return [0.0, 0]

    def add(self, value, accumulator):
        return [accumulator[0] + value, accumulator[1] + 1]

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1] if accumulator[1] else None

    def merge(self, a, b):
        return [a[0] + b[0], a[1] + b[1]]


class Track(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(
            ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY())
        )
        self.way = runtime_context.get_reducing_state(
            ReducingStateDescriptor("way", lambda a, b: a + b, Types.DOUBLE())
        )
        self.fastest = runtime_context.get_reducing_state(
            ReducingStateDescriptor("fastest", Longest(), Types.DOUBLE())
        )
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value, ctx):
        last = self.last.value()
        self.last.update(value)
        if last is None:
            yield value["car"], None, self.fastest.get(), self.mean.get()
            return
        leg = math.hypot(value["x"] - last["x"], value["y"] - last["y"])
        self.way.add(leg)
        self.fastest.add(leg / (value["t"] - last["t"]))
        self.mean.add(leg / (value["t"] - last["t"]))
        yield value["car"], self.way.get(), self.fastest.get(), round(self.mean.get(), 9)


def build(env, out):
    positions = env.from_collection(POSITIONS)
    out(positions.key_by(lambda p: p["car"], key_type=Types.INT()).process(Track()), "tracks")
