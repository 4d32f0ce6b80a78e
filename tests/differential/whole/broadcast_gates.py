"""Feature gates by broadcast: two descriptors, state of keys that rules change, and outputs of both sides."""

# mode: BATCH
# parallelism: 2
import fnmatch
from enum import IntEnum
from pyflink.common import Row, Types
from pyflink.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    MapFunction,
    OutputTag,
)
from pyflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

GATES = MapStateDescriptor("gates", Types.STRING(), Types.PICKLED_BYTE_ARRAY())
LIMITS = MapStateDescriptor("limits", Types.INT(), Types.LIST(Types.DOUBLE()))
DENIED = OutputTag("denied", Types.TUPLE([Types.STRING(), Types.STRING()]))


class Level(IntEnum):
    LOW = 1
    HIGH = 3


REQUESTS = [
    ("ann", "/admin", 3),
    ("bob", "/a/1", 1),
    ("ann", "/a/2", 2),
    ("cy", "/b", 0),
    ("bob", "/admin", 1),
    ("ann", "/b", 3),
    ("cy", "/a/9", 1),
]
RULES = [
    ("allow", "/a/*", 1),
    ("allow", "/admin", 3),
    ("deny", "/a/9", 0),
    ("limit", "ann", 2),
    ("allow", "/b", 1),
]


class Gate(KeyedBroadcastProcessFunction):
    def open(self, ctx):
        self.count = ctx.get_reducing_state(
            ReducingStateDescriptor("count", lambda a, b: a + b, Types.INT())
        )
        self.seen = ctx.get_map_state(
            MapStateDescriptor("seen", Types.STRING(), Types.LIST(Types.STRING()))
        )

    def process_element(self, value, ctx):
        user, path, level = value
        gates, limits = ctx.get_broadcast_state(GATES), ctx.get_broadcast_state(LIMITS)
        self.count.add(1)
        decided = sorted(
            (pattern, kind, needed)
            for pattern, (kind, needed) in gates.items()
            if fnmatch.fnmatch(path, pattern)
        )
        self.seen.put(path[:2], [*(self.seen.get(path[:2]) or []), path])
        match decided:
            case []:
                yield DENIED, (user, "no rule")
            case [(_, "deny", _), *_] | [*_, (_, "deny", _)]:
                yield DENIED, (user, path)
            case [(pattern, "allow", needed), *rest] if level >= needed:
                yield Row(user, path, pattern, len(rest), self.count.get())
            case [(pattern, _, needed), *_]:
                yield DENIED, (user, f"{pattern} needs {Level(needed).name}")
        if limits.contains(len(user)) and limits.get(len(user))[0] < self.count.get():
            yield DENIED, (user, f"limit {limits.get(len(user))} {dict(sorted(self.seen.items()))}")

    def process_broadcast_element(self, value, ctx):
        kind, pattern, needed = value
        if kind == "limit":
            ctx.get_broadcast_state(LIMITS).put(len(pattern), [needed, needed / 3])
            return
        gates = ctx.get_broadcast_state(GATES)
        if gates.contains(pattern):
            gates.remove(pattern)
        gates.put(pattern, (kind, needed))
        yield DENIED, ("rule", pattern)


class Plain(BroadcastProcessFunction):
    def __init__(self):
        self.rules = []

    def process_element(self, value, ctx):
        rules = ctx.get_broadcast_state(GATES)
        return [(value[0], sorted(rules.keys()), sorted(map(repr, rules.values())), self.rules)]

    def process_broadcast_element(self, value, ctx):
        self.rules.append(value[1])
        ctx.get_broadcast_state(GATES).put_all({value[1]: value}.items())
        return ()


class Where(MapFunction):
    def map(self, value):
        return value if isinstance(value, tuple) else tuple(value)


def build(env, out):
    requests = env.from_collection(
        REQUESTS, Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT()])
    )
    rules = env.from_collection(RULES, Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT()]))
    gate = (
        requests.key_by(lambda v: v[0], Types.STRING())
        .connect(rules.broadcast(GATES, LIMITS))
        .process(
            Gate(),
            Types.ROW([Types.STRING(), Types.STRING(), Types.STRING(), Types.INT(), Types.INT()]),
        )
    )
    out(gate, "gate")
    out(gate.get_side_output(DENIED), "denied")
    one = env.from_collection(RULES[:3]).map(lambda v: v).set_parallelism(1)
    plain = requests.connect(one.broadcast(GATES)).process(Plain())
    out(plain.map(lambda v: (v[0], v[1], len(v[2]), sorted(v[3]))), "plain")
    out(
        gate.map(Where())
        .key_by(lambda v: v[2])
        .reduce(lambda a, b: (*a[:3], a[3], max(a[4], b[4])))
        .map(lambda v: v[2:4]),
        "patterns",
    )
