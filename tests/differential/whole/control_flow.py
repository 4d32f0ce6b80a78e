"""A process function with every statement of Python."""

# mode: STREAMING
# parallelism: 1
import datetime, decimal, math, json, collections, functools, itertools
from decimal import Decimal
from pyflink.common import *
from pyflink.common import (
    Types,
    Row,
    RowKind,
    Time,
    Duration,
    Instant,
    WatermarkStrategy,
    Configuration,
)
from pyflink.common.typeinfo import TypeInformation
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import *
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


def timed(s):
    env = s.get_execution_environment()
    parallelism = env.get_parallelism()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(1))
    timed = s.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(At()))
    env.set_parallelism(parallelism)
    return timed


T3 = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
EV = [
    ("a", 100, 1),
    ("b", 200, 2),
    ("a", 900, 3),
    ("a", 1500, 4),
    ("b", 5200, 5),
    ("a", 3000, 6),
    ("a", 200, 7),
    ("c", -50, 8),
]


class P(ProcessFunction):
    LIMIT = 3

    def __init__(self, base):
        self.base = base
        self.seen = []

    def helper(self, v):
        try:
            return 10 // (v - 2)
        except ZeroDivisionError as e:
            return -1
        finally:
            self.seen.append(v)

    def process_element(self, v, ctx):
        h = self.helper(v)
        if h < 0:
            return
        i = 0
        while True:
            i += 1
            if i == 2:
                continue
            if i > self.LIMIT:
                break
            yield (v, i, h)
        else:
            yield "never"
        for j in []:
            pass
        else:
            yield ("else", len(self.seen), self.base)
        match v:
            case 1:
                yield "one"
            case 3 | 4:
                yield "more"
            case _:
                yield "other"
        if (n := (v * 2)) > 5:
            yield n
        with open("/dev/null") as f:
            yield f.read()
        x, *rest = [v, 1, 2]
        yield (x, rest)
        a = b = [v]
        a += [1]
        yield (a, b, a is b)
        d = {"k": v}
        d["z"] = d.pop("k")
        del d["z"]
        yield d
        assert v, "no"

        def inner():
            yield from (v, -v)

        yield from inner()
        yield [y for x in ([v], [v, v]) for y in x if y]
        yield (lambda *a, **k: (a, k))(v, z=v)


def build(env, out):
    s = env.from_collection([1, 2, 3], Types.INT())
    out(s.process(P("b")).map(lambda v: repr(v)), "out")
