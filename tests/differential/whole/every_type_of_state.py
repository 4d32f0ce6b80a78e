"""Value, list and map state of every type, read after each write."""

# mode: STREAMING
# parallelism: 2
import datetime
from decimal import Decimal

from pyflink.common import Instant, Row, RowKind, Types
from pyflink.datastream import KeyedProcessFunction, MapFunction
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

VALUES = {
    "STRING": (Types.STRING(), lambda v: "é" * v),
    "BYTE": (Types.BYTE(), lambda v: -v),
    "SHORT": (Types.SHORT(), lambda v: v * 1000),
    "INT": (Types.INT(), lambda v: v * 10**6),
    "LONG": (Types.LONG(), lambda v: v * 10**15),
    "FLOAT": (Types.FLOAT(), lambda v: v / 4),
    "DOUBLE": (Types.DOUBLE(), lambda v: v / 3),
    "BOOLEAN": (Types.BOOLEAN(), lambda v: v % 2 == 0),
    "CHAR": (Types.CHAR(), lambda v: chr(96 + v)),
    "BIG_INT": (Types.BIG_INT(), lambda v: 10 ** (10 + v)),
    "BIG_DEC": (Types.BIG_DEC(), lambda v: Decimal(v) / 8),
    "DATE": (Types.SQL_DATE(), lambda v: datetime.date(2024, 2, 27 + v % 2)),
    "TIME": (Types.SQL_TIME(), lambda v: datetime.time(v, 30, 15, 123000)),
    "TIMESTAMP": (Types.SQL_TIMESTAMP(), lambda v: datetime.datetime(2024, 1, v, 1, 2, 3, 456000)),
    "INSTANT": (Types.INSTANT(), lambda v: Instant.of_epoch_milli(v * 1001)),
    "BYTES": (Types.PRIMITIVE_ARRAY(Types.BYTE()), lambda v: bytes([v, 255, 0])),
    "INTS": (Types.PRIMITIVE_ARRAY(Types.INT()), lambda v: [v, -v]),
    "DOUBLES": (Types.PRIMITIVE_ARRAY(Types.DOUBLE()), lambda v: [v / 2]),
    "STRINGS": (Types.BASIC_ARRAY(Types.STRING()), lambda v: ["a"] * v),
    "OBJECTS": (Types.OBJECT_ARRAY(Types.ROW([Types.INT()])), lambda v: [Row(v), Row(-v)]),
    "LIST": (Types.LIST(Types.LIST(Types.INT())), lambda v: [[v], [], [v, v]]),
    "MAP": (Types.MAP(Types.STRING(), Types.LIST(Types.DOUBLE())), lambda v: {"a" * v: [v / 2]}),
    "TUPLE": (Types.TUPLE([Types.INT(), Types.STRING()]), lambda v: (v, str(v))),
    "ROW": (Types.ROW([Types.INT(), Types.BOOLEAN()]), lambda v: Row(v, None)),
    "NAMED": (
        Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.ROW_NAMED(["c"], [Types.STRING()])]),
        lambda v: Row(a=v, b=Row(c="x" * v)),
    ),
    "PICKLED": (Types.PICKLED_BYTE_ARRAY(), lambda v: {("any", v): {v, v + 1}}),
}


class Keep(KeyedProcessFunction):
    def __init__(self, name):
        self.name = name

    def open(self, ctx):
        declared, self.make = VALUES[self.name]
        self.value = ctx.get_state(ValueStateDescriptor("value", declared))
        self.list = ctx.get_list_state(ListStateDescriptor("list", declared))
        self.map = ctx.get_map_state(MapStateDescriptor("map", Types.INT(), declared))

    def process_element(self, value, ctx):
        made = self.make(value)
        before = self.value.value()
        self.value.update(made)
        self.list.add(made)
        self.map.put(value, made)
        lists = [item for item in self.list.get()]
        mapped = sorted(self.map.items(), key=lambda item: item[0])
        yield f"{before} {self.value.value()} {lists} {mapped} {self.map.contains(value)} {self.map.is_empty()}"


class CountKinds(MapFunction):
    def open(self, ctx):
        self.row = ctx.get_state(
            ValueStateDescriptor("row", Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.INT()]))
        )

    def map(self, value):
        old = self.row.value()
        row = Row(k=value.get_row_kind().name, n=(old.n if old else 0) + 1)
        row.set_row_kind(value.get_row_kind())
        self.row.update(row)
        return row


def change(kind, name, number):
    row = Row(name, number)
    row.set_row_kind(kind)
    return row


def build(env, out):
    numbers = env.from_collection([1, 2, 3, 5], Types.INT())
    for name in VALUES:
        out(numbers.key_by(lambda v: v % 2, Types.INT()).process(Keep(name), Types.STRING()), name)
    changes = env.from_collection(
        [
            change(RowKind.INSERT, "a", 1),
            change(RowKind.UPDATE_BEFORE, "a", 1),
            change(RowKind.UPDATE_AFTER, "a", 2),
            change(RowKind.DELETE, "b", 3),
        ],
        Types.ROW_NAMED(["name", "number"], [Types.STRING(), Types.INT()]),
    )
    out(changes, "changes")
    out(changes.map(lambda row: repr((row.get_row_kind(), row.name))), "kinds")
    kinds = changes.key_by(lambda row: row.name).map(
        CountKinds(), Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.INT()])
    )
    out(kinds.map(lambda row: repr((row, row.get_row_kind()))), "counted")
    out(changes.filter(lambda row: row.get_row_kind() != RowKind.UPDATE_BEFORE), "upserts")
