"""Operators made in loops, and variables, lists and objects that change after they were passed."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, CoMapFunction, KeySelector, MapFunction
from pyflink.datastream.window import TumblingEventTimeWindows

limit = 0
calls = 0
seen = []


def is_above(value):
    return value > limit


def count(value):
    global calls
    calls += 1
    seen.append(value)
    return value, calls, len(seen)


def remember(value, found=[]):
    found.append(value)
    return list(found)


class Scale(MapFunction):
    def __init__(self, factor):
        self.factor = factor

    def map(self, value):
        self.factor += 1
        return value * self.factor


class Remainder(KeySelector):
    def __init__(self):
        self.by = 1

    def get_key(self, value):
        return value % self.by


class Add(CoMapFunction):
    def __init__(self):
        self.plus = [0]

    def map1(self, value):
        return value + self.plus[-1]

    def map2(self, value):
        return -value - self.plus[-1]


class Last(AggregateFunction):
    def __init__(self):
        self.name = "?"

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return value

    def get_result(self, accumulator):
        return self.name, accumulator

    def merge(self, a, b):
        return max(a, b)


class At(TimestampAssigner):
    def __init__(self):
        self.unit = 1

    def extract_timestamp(self, value, record_timestamp):
        return value * self.unit


def build(env, out):
    global limit
    numbers = env.from_collection([1, 2, 3, 4], Types.INT())
    for number in (2, 3):
        limit = number
        out(numbers.filter(lambda v: v < number), f"lambda {number}")
        out(numbers.filter(is_above), f"global {number}")
        out(
            numbers.key_by(lambda v: v % number).reduce(lambda a, b: a + b * number),
            f"reduced {number}",
        )
    streams = {name: numbers.map(lambda v: name * v) for name in "ab"}
    for name, stream in streams.items():
        out(stream, name)
    out(numbers.map(count), "counted")
    out(numbers.map(count).map(count), "counted twice")
    out(numbers.map(remember).map(lambda v: len(v)).map(remember), "remembered")
    scale, remainder, add, last = Scale(1), Remainder(), Add(), Last()
    for number in (2, 3):
        scale.factor, remainder.by, last.name = number * 10, number, str(number)
        add.plus.append(number * 100)
        out(numbers.map(scale).map(scale), f"scaled {number}")
        out(numbers.key_by(remainder).reduce(lambda a, b: a + b), f"remainder {number}")
        out(numbers.connect(numbers).map(add), f"added {number}")
        at = At()
        at.unit = number * 1000
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_minutes(1)
        ).with_timestamp_assigner(at)
        timed = numbers.assign_timestamps_and_watermarks(strategy)
        at.unit = 1
        windows = TumblingEventTimeWindows.of(Time.seconds(number + 3))
        out(timed.key_by(lambda v: number).window(windows).aggregate(last), f"windows {number}")
        out(
            numbers.partition_custom(lambda key, n: key % n, lambda v: v + number).map(lambda v: v),
            f"sent {number}",
        )
    scale.factor = remainder.by = 1000
    last.name = "later"
    add.plus.append(0)
