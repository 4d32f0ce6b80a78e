"""Small programs as source text: each source with each function, each body of it and each reader of its results.

`combined_program` gives a module with `draw(env)`, whose results reach `seen(stream, "results")`. In the tables, `K` and
`N` stand for the key and the number of a record.
"""

from __future__ import annotations

import re
from itertools import product
from textwrap import indent

HEAD = """
import json
from dataclasses import dataclass
from typing import NamedTuple

from forms import seen
from opchain.common import Row, Time, TimestampAssigner, Types, WatermarkStrategy
from opchain.datastream import OutputTag
from opchain.datastream.functions import *
from opchain.datastream.state import *
from opchain.datastream.window import *

TAG = OutputTag("tag", Types.PICKLED_BYTE_ARRAY())
NUMBERS = MapStateDescriptor("numbers", Types.INT(), Types.INT())
ROWS = Types.ROW_NAMED(["k", "n"], [Types.INT(), Types.INT()])

class Named(NamedTuple):
    k: int
    n: int

@dataclass
class Data:
    k: int
    n: int

class Times(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return len(repr(value))

class Same(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value

class First(KeyedProcessFunction):
    def open(self, context):
        self.first = context.get_state(ValueStateDescriptor("first", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        if self.first.value() is None:
            self.first.update(1)
            yield ctx.get_current_key(), 1

def draw(env):
    stream = SOURCE.key_by(lambda v: K)
    stream = stream.CALL
    seen(READER, "results")

"""

SOURCES = {
    "numbers": ("env.from_sequence(0, 9)", "v", "v"),
    "numbers modulo three": ("env.from_sequence(0, 9)", "v % 3", "v"),
    "tuples": ("env.from_sequence(0, 9).map(lambda x: (x % 3, x))", "v[0]", "v[1]"),
    "tuples of three": ("env.from_sequence(0, 9).map(lambda x: (x, x % 3, 'a'))", "v[1]", "v[0]"),
    "few tuples": (
        "env.from_sequence(0, 9).map(lambda x: (x % 3, x)).rebalance().filter(lambda v: v[1] > 8)",
        "v[0]",
        "v[1]",
    ),
    "declared tuples": (
        "env.from_sequence(0, 9).map(lambda x: (x % 3, x), Types.TUPLE([Types.INT(), Types.LONG()]))",
        "v[0]",
        "v[1]",
    ),
    "dicts": ("env.from_sequence(0, 9).map(lambda x: {'k': x % 3, 'n': x})", "v['k']", "v['n']"),
    "JSON": (
        """env.from_sequence(0, 9).map(lambda x: json.dumps({'k': x % 3, 'n': x, 'more': [x]})).map(json.loads)""",
        "v['k']",
        "v['n']",
    ),
    "Rows": ("env.from_sequence(0, 9).map(lambda x: Row(k=x % 3, n=x))", "v['k']", "v.n"),
    "declared Rows": ("env.from_sequence(0, 9).map(lambda x: Row(x % 3, x), ROWS)", "v.k", "v[1]"),
    "Rows of a collection": (
        "env.from_collection([Row(x % 3, x) for x in range(10)], ROWS)",
        "v.k",
        "v.n",
    ),
    "named tuples": ("env.from_sequence(0, 9).map(lambda x: Named(x % 3, x))", "v.k", "v.n"),
    "dataclasses": ("env.from_sequence(0, 9).map(lambda x: Data(x % 3, x))", "v.k", "v.n"),
    "words": (
        "env.from_collection(['a b', 'c', 'a'], Types.STRING()).flat_map(lambda v: v.split())",
        "v",
        "len(v)",
    ),
    "unknown types": (
        "env.from_collection([(x % 3 or None, x) for x in range(10)])",
        "v[0]",
        "v[1]",
    ),
    "two streams": (
        """env.from_sequence(0, 4).map(lambda x: (x % 3, x)).union(
        env.from_sequence(5, 9).map(lambda x: (x % 3, x, 'more'))
    )""",
        "v[0]",
        "v[1]",
    ),
}
"""By name: the stream, and the key and number of its records `v`."""

_FLAT_MAP = """
class P(FlatMapFunction):
    seen = 0

    def flat_map(self, v):
        BODY
"""

FUNCTIONS = {
    "flat map": (
        _FLAT_MAP,
        "flat_map(P())",
    ),
    "flat map after a map": (
        _FLAT_MAP,
        "map(lambda v: v).flat_map(P())",
    ),
    "process": (
        """
class P(ProcessFunction):
    def __init__(self):
        self.seen = 0

    def process_element(self, v, ctx):
        BODY
""",
        "map(lambda v: v).process(P())",
    ),
    "keyed process": (
        """
class P(KeyedProcessFunction):
    def __init__(self):
        self.seen = 0

    def process_element(self, v, ctx):
        BODY
""",
        "process(P())",
    ),
    "state and timers": (
        """
class P(KeyedProcessFunction):
    seen = 0

    def open(self, context):
        self.many = context.get_state(ValueStateDescriptor("many", Types.LONG()))

    def process_element(self, v, ctx):
        self.many.update((self.many.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(5)
        BODY

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.many.value()
""",
        "process(P())",
    ),
    "two inputs": (
        """
class P(KeyedCoProcessFunction):
    seen = 0

    def process_element1(self, v, ctx):
        BODY

    def process_element2(self, v, ctx):
        BODY
""",
        "connect(stream).process(P())",
    ),
    "broadcast": (
        """
class P(KeyedBroadcastProcessFunction):
    seen = 0

    def process_element(self, v, ctx):
        BODY

    def process_broadcast_element(self, v, ctx):
        ctx.get_broadcast_state(NUMBERS).put(1, 1)
""",
        "connect(env.from_sequence(1, 2).broadcast(NUMBERS)).process(P())",
    ),
    "count window": (
        """
class P(ProcessWindowFunction):
    seen = 0

    def process(self, key, ctx, elements):
        for v in elements:
            BODY
""",
        "window(CountTumblingWindowAssigner.of(2)).process(P())",
    ),
    "time window": (
        """
class P(WindowFunction):
    seen = 0

    def apply(self, key, window, elements):
        for v in elements:
            BODY
""",
        """map(lambda v: v).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times())
    ).key_by(lambda v: K).window(TumblingEventTimeWindows.of(Time.milliseconds(4))).apply(P())""",
    ),
}
"""By name: a class `P`, and the call that uses it on a keyed stream."""

BODIES = {
    "key": "yield K",
    "key and one": "yield K, 1",
    "key twice": "yield K, 1, K",
    "number": "yield N",
    "record": "yield v",
    "variable of the record": "x = v\nyield x",
    "constant": "yield 1",
    "nothing": "return []",
    "list": "return [K]",
    "swapped": "a, b = N, K\nyield a, b",
    "nested": "yield K, (K, N)",
    "list as record": "yield [K, N]",
    "dict": "d = {'a': K, 'b': N}\nyield d",
    "item of a dict": "yield {'a': K, 'b': 1}['a'], 1",
    "Row": "yield Row(K, N)",
    "Row with names": "yield Row(a=K, b=N)",
    "named tuple": "yield Named(K, N)",
    "dataclass": "yield Data(K, N)",
    "text": 'yield f"{K}-{N}"',
    "none": "yield K, None",
    "comparison": "yield K == 1, N",
    "choice": "yield (K if N > 2 else N), 1",
    "several kinds": "yield (K, 1) if N % 2 else [K]",
    "sum": "more = N\nmore += 1\nyield K, more",
    "starred": "a, *b = (K, N, 1)\nyield a, len(b)",
    "local variables": "x = K\ny = x\nyield y, y, x",
    "some": "if N > 3:\n    yield K",
    "some pairs": "if N > 3:\n    yield K, 1",
    "some swapped": "if K in (1, 2) and N > 1:\n    yield N, K",
    "one of two": "if N % 2:\n    yield K, 1\nelse:\n    yield K, N",
    "early return": "if N == 4:\n    return\nyield K, N",
    "walrus": "if (more := N * 2) > 6:\n    yield K, more",
    "two": "yield K, 1\nyield K, 2",
    "two kinds": "yield K\nyield K, N",
    "side output": "yield TAG, K\nyield K",
    "loop": "for i in range(2):\n    yield K",
    "loop with break": "for i in range(5):\n    if i == N:\n        break\n    yield K, i",
    "while": "i = 0\nwhile i < 2:\n    yield K, i\n    i += 1",
    "yield from": "yield from [(K, i) for i in range(2)]",
    "filled list": "found = []\nfor i in range(2):\n    found.append((K, i))\nreturn found",
    "attribute": "self.seen += 1\nyield K, self.seen",
    "last record": "self.seen = K\nyield self.seen, N",
    "try": "try:\n    yield K, 1\nexcept ValueError:\n    pass",
    "try around some": "try:\n    if N > 2:\n        yield K, 1\nexcept KeyError:\n    return",
    "try before": "try:\n    x = K\nexcept KeyError:\n    return\nyield x, 1",
    "try with another result": "try:\n    x = 10 // (N - 3)\nexcept ZeroDivisionError:\n    yield K, 0\n    return\nyield K, x",
    "caught or not": "try:\n    yield K, N\nexcept Exception:\n    yield 0, 0",
    "finally": "try:\n    yield K\nfinally:\n    self.seen = 0",
    "error": "yield K, 1 // (N - 3)",
    "current key": "yield ctx.get_current_key(), 1",
    "timestamp": "yield K, ctx.timestamp()",
}
"""By name: statements that process a record `v`. Some fail in some functions, as `ctx` in a flat map."""

READERS = {
    "the sink": "stream",
    "a map": "stream.rebalance().map(lambda p: p)",
    "a map in the chain": "stream.map(lambda p: (p, 1))",
    "its first field": "stream.map(lambda p: p[0])",
    "its second field after an exchange": "stream.rebalance().map(lambda p: p[1])",
    "a count": "stream.rebalance().map(lambda p: 1)",
    "a filter": "stream.filter(lambda p: p != 3).rebalance().filter(lambda p: p)",
    "its text as key": "stream.key_by(lambda p: str(p)).map(lambda p: p)",
    "itself as key": "stream.filter(lambda p: p != 3).key_by(lambda p: p).process(Same())",
    "twice itself": "stream.flat_map(lambda p: [p, p]).key_by(lambda p: str(p)).process(Same())",
    "a field as key": "stream.key_by(lambda p: p[0]).process(Same()).map(lambda p: p[0])",
    "a field as key and a state": "stream.key_by(lambda p: p[0]).process(First())",
    "itself in a pair": "stream.map(lambda p: (str(p), 1)).key_by(lambda p: p[0]).sum(1)",
    "a reduce": "stream.key_by(lambda p: p[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))",
    "a union": "stream.map(lambda p: p).union(env.from_sequence(1, 2)).key_by(lambda p: 1).process(Same())",
}
"""By name: what reads the results `p`."""

COMBINATIONS = list(product(SOURCES, FUNCTIONS, BODIES, READERS))
"""The names of all programs."""


def combined_program(source: str, function: str, body: str, reader: str) -> str:
    """The text of a module that defines `draw(env)`."""
    records, key, number = SOURCES[source]
    kind, call = FUNCTIONS[function]
    kind = re.sub("( +)BODY", lambda found: indent(BODIES[body], found[1]), kind)
    text = HEAD.replace("SOURCE", records).replace("CALL", call).replace("READER", READERS[reader])
    return re.sub(r"\b[KN]\b", lambda found: {"K": key, "N": number}[found[0]], text + kind)
