"""None, dictionaries, sets, lists, objects, rows and numbers of another type as keys."""

# mode: STREAMING
# parallelism: 1
import datetime
from decimal import Decimal

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction
from pyflink.datastream.state import ValueStateDescriptor


class Thing:
    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return f"Thing({self.number})"


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{ctx.get_current_key()!r} {count}"


SELECTORS = {
    "none": lambda v: None,
    "some are none": lambda v: None if v % 2 else v,
    "dict": lambda v: {"a": v % 2},
    "frozenset": lambda v: frozenset([v % 2]),
    "list": lambda v: [v % 2],
    "object": lambda v: Thing(v % 2),
    "bytes": lambda v: bytes([v % 2]),
    "row": lambda v: Row(v % 2, "a"),
}


def build(env, out):
    numbers = env.from_collection([1, 2, 3, 4])
    for name, selector in SELECTORS.items():
        out(numbers.key_by(selector).process(Count()), name)
    out(numbers.key_by(lambda v: None, Types.STRING()).process(Count()), "none as STRING")
    out(numbers.key_by(lambda v: v / 2, Types.INT()).process(Count()), "float as INT")
    out(numbers.key_by(lambda v: -v / 2, Types.LONG()).process(Count()), "float as LONG")
    out(numbers.key_by(lambda v: v > 1, Types.BOOLEAN()).process(Count()), "bool")
    out(numbers.key_by(lambda v: Decimal(v % 2), Types.BIG_DEC()).process(Count()), "decimal")
    days = numbers.key_by(lambda v: datetime.date(2020, 1, 1 + v % 2), Types.SQL_DATE())
    out(days.process(Count()), "date")
    rows = numbers.key_by(lambda v: Row(v % 2, "a"), Types.ROW([Types.INT(), Types.STRING()]))
    out(rows.process(Count()), "typed row")
    tuples = numbers.key_by(lambda v: (v % 2, "a"), Types.TUPLE([Types.INT(), Types.STRING()]))
    out(tuples.process(Count()), "typed tuple")
    out(numbers.key_by(lambda v: None).count_window(2).reduce(lambda a, b: a + b), "window")
    out(numbers.key_by(lambda v: {"a": v % 2}).reduce(lambda a, b: a + b), "reduce")
