"""Streams that fork and meet again: unions of keyed streams, of side outputs, and of a stream with itself."""

# mode: STREAMING
# parallelism: 2
from pyflink.common import Row, Types
from pyflink.datastream import (
    CoMapFunction,
    CoProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
)
from pyflink.datastream.state import ReducingStateDescriptor, ValueStateDescriptor

ODD = OutputTag("odd", Types.INT())
LARGE = OutputTag("large", Types.INT())


class Route(ProcessFunction):
    def process_element(self, value, ctx):
        if value % 2:
            yield ODD, value
        if value > 3:
            yield LARGE, value
        yield value


class Sum(MapFunction):
    def open(self, ctx):
        self.sum = ctx.get_reducing_state(
            ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())
        )

    def map(self, value):
        self.sum.add(value)
        return self.sum.get()


class Sides(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield ODD, value
        yield value

    def process_element2(self, value, ctx):
        yield LARGE, -value


class Change(CoMapFunction):
    def map1(self, value):
        value.append("one")
        return value

    def map2(self, value):
        value.append("two")
        return value


def build(env, out):
    numbers = env.from_collection([1, 2, 3, 4, 5], Types.INT())
    routed = numbers.process(Route(), Types.INT())
    odd, large = routed.get_side_output(ODD), routed.get_side_output(LARGE)
    out(odd.union(large, routed), "all three")
    out(odd.union(odd).union(odd), "three times")
    out(
        odd.map(lambda v: v * 10, Types.INT())
        .union(large.filter(lambda v: v != 4))
        .key_by(lambda v: 0)
        .map(Sum())
        .map(lambda v: v >= 0),
        "summed",
    )
    again = odd.process(Route(), Types.INT())
    out(again.get_side_output(LARGE).union(large), "side outputs of side outputs")
    both = odd.connect(large).process(Sides(), Types.INT())
    out(both, "sides")
    out(both.get_side_output(ODD).union(both.get_side_output(LARGE)), "sides united")
    lists = numbers.map(lambda v: [v])
    left = lists.map(lambda l: l.append("left") or l)
    right = lists.map(lambda l: l.append("right") or l)
    out(lists, "untouched")
    out(left.union(right), "left and right")
    out(lists.connect(lists).map(Change()), "connected with itself")
    out(left.connect(right).map(Change()), "connected")
    keyed = numbers.key_by(lambda v: v % 2, Types.INT())
    out(
        keyed.map(lambda v: v + 1, Types.INT()).union(keyed.reduce(lambda a, b: a + b)),
        "keyed union",
    )
    one = keyed.reduce(lambda a, b: a + b)
    out(one.map(lambda v: -v), "negated")
    out(one.filter(lambda v: v > 1), "filtered")
    rows = numbers.map(lambda v: Row(n=v, items=[v]))
    first = rows.map(lambda r: r.items.append(0) or r)
    second = rows.filter(lambda r: len(r.items) == 1)
    out(first.map(lambda r: (r.n, r.items)), "first")
    out(second.map(lambda r: (r.n, r.items)), "second")
