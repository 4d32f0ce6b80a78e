"""Changes of tables as JSON of Debezium: upserts, deletes, tombstones, and a materialized join of two tables."""

# mode: STREAMING and BATCH
# parallelism: 1
import json
from functools import partial, reduce
from operator import attrgetter, itemgetter, methodcaller

from pyflink.common import Row, RowKind, Types
from pyflink.datastream import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    ProcessFunction,
)
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

LINES = [
    '{"op": "c", "table": "users", "after": {"id": 1, "name": "Ann", "tags": ["a"]}, "ts": 1}',
    '{"op": "c", "table": "users", "after": {"id": 2, "name": "Bob", "tags": []}, "ts": 2}',
    '{"op": "u", "table": "users", "before": {"id": 1, "name": "Ann", "tags": ["a"]}, "after": {"id": 1, "name": "Anna", "tags": ["a", "b"]}, "ts": 3}',
    "null",
    '{"op": "d", "table": "users", "before": {"id": 2, "name": "Bob", "tags": []}, "after": null, "ts": 4}',
    '{"op": "r", "table": "users", "after": {"id": 3, "name": null, "tags": null}, "ts": 5}',
    '{"op": "c", "table": "orders", "after": {"id": 7, "user": 1, "sum": 12.5}, "ts": 6}',
    '{"op": "u", "table": "users", "before": null, "after": {"id": 2, "name": "Bob II", "tags": ["z"]}, "ts": 0}',
    '{"op": "t", "table": "orders"}',
    "{broken",
    '{"op": "d", "table": "users", "before": {"id": 9}, "ts": 7}',
]
USER = Types.ROW_NAMED(
    ["id", "name", "tags"], [Types.INT(), Types.STRING(), Types.LIST(Types.STRING())]
)
BAD = OutputTag("bad", Types.STRING())
UNKNOWN = OutputTag("unknown", Types.MAP(Types.STRING(), Types.STRING()))


class Decode(ProcessFunction):
    KINDS = {
        "c": RowKind.INSERT,
        "r": RowKind.INSERT,
        "u": RowKind.UPDATE_AFTER,
        "d": RowKind.DELETE,
    }

    def process_element(self, value, ctx):
        try:
            change = json.loads(value)
        except json.JSONDecodeError as error:
            yield BAD, f"{error.msg} at {error.pos}"
        else:
            if change is None:
                return
            if change["op"] not in self.KINDS:
                yield UNKNOWN, {k: str(v) for k, v in change.items()}
                return
            content = change.get("after") or change["before"]
            row = Row(change["table"], content["id"], content, change["ts"])
            row.set_row_kind(self.KINDS[change["op"]])
            yield row
        finally:
            self.count = getattr(self, "count", 0) + 1


class Upsert(KeyedProcessFunction):
    def open(self, ctx):
        self.row = ctx.get_state(ValueStateDescriptor("row", USER))
        self.version = ctx.get_state(ValueStateDescriptor("version", Types.LONG()))

    def process_element(self, value, ctx):
        table, number, content, version = value
        if (self.version.value() or -1) >= version:
            yield BAD, f"{number} is stale at {version}"
            return
        self.version.update(version)
        old, kind = self.row.value(), value.get_row_kind()
        if kind == RowKind.DELETE:
            if old is not None:
                old.set_row_kind(kind)
                yield old
                self.row.clear()
            return
        new = Row(id=number, name=content["name"], tags=content["tags"])
        if old is not None:
            old.set_row_kind(RowKind.UPDATE_BEFORE)
            yield old
            new.set_row_kind(RowKind.UPDATE_AFTER)
        self.row.update(new)
        yield new


class Table(KeySelector):
    def get_key(self, value):
        return value[0]


def shown(prefix, row, *, suffix="."):
    return f"{prefix}{row.get_row_kind()} {row}{suffix}"


def build(env, out):
    lines = env.from_collection(LINES, Types.STRING())
    changes = lines.process(Decode())
    out(
        changes.map(
            lambda r: (str(r.get_row_kind()), r[0], r[1], json.dumps(r[2], sort_keys=True))
        ),
        "changes",
    )
    out(changes.get_side_output(BAD), "bad")
    out(changes.get_side_output(UNKNOWN), "unknown")
    users = changes.filter(lambda r: r[0] == "users").key_by(itemgetter(1)).process(Upsert(), USER)
    out(users, "users")
    out(users.map(partial(shown, "> ", suffix="!")), "kinds")
    out(users.get_side_output(BAD), "stale")
    out(
        users.key_by(attrgetter("id"), Types.INT()).map(
            lambda r: r.set_field_names(["x", "y", "z"]) or r
        ),
        "renamed",
    )
    out(
        changes.key_by(Table(), Types.STRING())
        .reduce(lambda a, b: Row(a[0], a[1] + b[1], {**a[2], **b[2]}, b[3]))
        .map(lambda r: (r[0], r[1], sorted(r[2]))),
        "merged",
    )
    out(users.map(methodcaller("as_dict")), "dictionaries")
    out(users.map(lambda r: reduce(lambda a, b: a + str(b), r, "")), "folded")
