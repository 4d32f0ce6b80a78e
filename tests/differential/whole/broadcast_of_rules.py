"""Broadcast state of rows, changed and removed by later rules; keyed state applied to all keys."""

# mode: STREAMING
# parallelism: 2
from pyflink.common import Row, Types
from pyflink.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    OutputTag,
    BroadcastStream,
)
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor, ListStateDescriptor


def rule():
    return Types.ROW_NAMED(
        ["name", "limit", "words"], [Types.STRING(), Types.INT(), Types.LIST(Types.STRING())]
    )


RULES = MapStateDescriptor("rules", Types.STRING(), rule())
COUNTS = MapStateDescriptor("counts", Types.STRING(), Types.INT())
IGNORED = OutputTag("ignored", Types.STRING())


class OnlyRules(BroadcastProcessFunction):
    """The rules only: what comes first of the two inputs is not known."""

    def process_element(self, value, ctx):
        return
        yield

    def process_broadcast_element(self, value, ctx):
        rules = ctx.get_broadcast_state(RULES)
        counts = ctx.get_broadcast_state(COUNTS)
        counts.put(value.name, (counts.get(value.name) or 0) + 1)
        if value.limit < 0:
            if value.name in rules:
                del rules[value.name]
            else:
                yield IGNORED, value.name
        else:
            rules.put(value.name, value)
        yield (
            sorted((name, row.limit, row.words) for name, row in rules.items()),
            sorted(counts.items()),
        )


class AtTheEnd(KeyedBroadcastProcessFunction):
    """Numbers of a key wait for a timer at the end, so all rules are there."""

    def open(self, ctx):
        self.numbers = ctx.get_list_state(ListStateDescriptor("numbers", Types.INT()))

    def process_element(self, value, ctx):
        self.numbers.add(value)
        ctx.timer_service().register_event_time_timer(10)

    def process_broadcast_element(self, value, ctx):
        state = ctx.get_broadcast_state(RULES)
        if value.limit < 0:
            state.remove(value.name)
        else:
            state.put(value.name, value)

    def on_timer(self, timestamp, ctx):
        rules = ctx.get_broadcast_state(RULES)
        for number in sorted(self.numbers.get()):
            passed = [name for name, row in rules.items() if number <= row.limit]
            yield (
                ctx.get_current_key(),
                number,
                sorted(passed),
                rules.contains("b"),
                rules.is_empty(),
            )
        yield IGNORED, f"{ctx.get_current_key()} {sorted(rules.keys())} {len(list(rules.values()))}"


def build(env, out):
    rules = env.from_collection(
        [
            Row("a", 5, ["x"]),
            Row("b", 3, []),
            Row("a", 7, ["y", "z"]),
            Row("b", -1, []),
            Row("c", -1, []),
            Row("d", 1, []),
        ],
        rule(),
    )
    numbers = env.from_collection([1, 6, 7, 8], Types.INT())
    both = numbers.connect(rules.broadcast(RULES, COUNTS))
    found = both.process(OnlyRules())
    out(found, "rules")
    out(found.get_side_output(IGNORED), "ignored")
    keyed = numbers.key_by(lambda v: v % 2, Types.INT()).connect(rules.broadcast(RULES))
    at_end = keyed.process(
        AtTheEnd(),
        Types.TUPLE(
            [Types.INT(), Types.INT(), Types.LIST(Types.STRING()), Types.BOOLEAN(), Types.BOOLEAN()]
        ),
    )
    out(at_end, "end")
    out(at_end.get_side_output(IGNORED), "end ignored")
