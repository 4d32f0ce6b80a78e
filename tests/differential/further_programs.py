"""Further random programs: nested types with None, states of these types, triggers, window states, and parallelism.

They have seeds of their own, so that the programs of programs_of_the_suite.py stay the same.
"""

from __future__ import annotations

import random

from programs_of_the_suite import Program, source

TYPES = [
    (
        "[Row(v[0], v[1]), Row(None, v[1])]",
        "Types.LIST(Types.ROW([Types.STRING(), Types.INT()]))",
    ),
    (
        "Row(v[0], [Row(v[1], None), Row(None, v[0])])",
        "Types.ROW([Types.STRING(), Types.LIST(Types.ROW([Types.INT(), Types.STRING()]))])",
    ),
    (
        "Row(n=None if v[1] > 5 else v[1], inner=Row(a=v[0], b=[v[1], v[2]]))",
        (
            "Types.ROW_NAMED(['n', 'inner'], [Types.INT(), "
            "Types.ROW_NAMED(['a', 'b'], [Types.STRING(), Types.LIST(Types.LONG())])])"
        ),
    ),
    ("{v[0]: [v[1], v[2]], 'z': []}", "Types.MAP(Types.STRING(), Types.LIST(Types.LONG()))"),
    ("{v[0]: None, 'z': v[1]}", "Types.MAP(Types.STRING(), Types.INT())"),
    (
        "{v[1]: Row(v[0], None)}",
        "Types.MAP(Types.INT(), Types.ROW([Types.STRING(), Types.INT()]))",
    ),
    ("[None, v[0], None]", "Types.BASIC_ARRAY(Types.STRING())"),
    ("[v[1], None]", "Types.BASIC_ARRAY(Types.LONG())"),
    ("[v[1] / 4, v[1]]", "Types.PRIMITIVE_ARRAY(Types.DOUBLE())"),
    ("[v[1] > 3, False]", "Types.PRIMITIVE_ARRAY(Types.BOOLEAN())"),
    (
        "[Row(v[0], v[1] / 2), None]",
        "Types.OBJECT_ARRAY(Types.ROW([Types.STRING(), Types.DOUBLE()]))",
    ),
    (
        "[[v[0], None], []]",
        "Types.OBJECT_ARRAY(Types.BASIC_ARRAY(Types.STRING()))",
    ),
    (
        "(v[0], (v[1], [v[2]]))",
        "Types.TUPLE([Types.STRING(), Types.TUPLE([Types.INT(), Types.LIST(Types.INT())])])",
    ),
    (
        "Row(__import__('decimal').Decimal(v[1]) / 8, None)",
        "Types.ROW([Types.BIG_DEC(), Types.BIG_DEC()])",
    ),
    (
        "Row(__import__('datetime').time(v[2] % 24, 5, 6, 700000), None)",
        "Types.ROW([Types.SQL_TIME(), Types.SQL_TIME()])",
    ),
    (
        "Row(__import__('datetime').date(2020, 1, 1 + v[2] % 28), None)",
        "Types.ROW([Types.SQL_DATE(), Types.SQL_DATE()])",
    ),
    (
        "[__import__('datetime').datetime(2020, 1, 2, 3, 4, v[2] % 60, 678000)]",
        "Types.LIST(Types.SQL_TIMESTAMP())",
    ),
    ("Row(Instant.of_epoch_milli(v[2] * 1001), v[1])", "Types.ROW([Types.INSTANT(), Types.INT()])"),
    ("Row(v[0].encode(), v[1])", "Types.ROW([Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.INT()])"),
    ("Row({'a': [v[1]]}, v[0])", "Types.ROW([Types.PICKLED_BYTE_ARRAY(), Types.STRING()])"),
    ("{'a': (v[0], [v[1], None])}", "Types.PICKLED_BYTE_ARRAY()"),
    ("v[1] * 10**18", "Types.BIG_INT()"),
    ("Row(v[0], v[1], v[1] / 3)", "Types.ROW([Types.CHAR(), Types.SHORT(), Types.FLOAT()])"),
]
"""Values of an event, and a nested type."""


def nested_types(program: Program) -> None:
    """Values of nested types that cross to Java, are keys of later operators, or are records of unions."""
    source(program)
    value, declared = program.random.choice(TYPES)
    program.define("from pyflink.common import Instant")
    program.add(f"m = s.map(lambda v: {value}, output_type={declared})")
    shape = program.random.choice(["crossing", "again", "keyed", "union", "text", "reduced"])
    if shape == "again":
        program.add(f"out(m.rebalance().map(lambda v: v, output_type={declared}), 'again')")
    elif shape == "keyed":
        program.add(
            f"out(m.key_by(lambda v: 'k').map(lambda v: v, output_type={declared}), 'keyed')"
        )
    elif shape == "union":
        program.add("out(m.union(m.filter(lambda v: False)), 'union')")
    elif shape == "text":
        program.add("out(m.rebalance().map(lambda v: str(v), output_type=Types.STRING()), 'text')")
    elif shape == "reduced":
        program.add("out(m.key_by(lambda v: str(v)).reduce(lambda a, b: b), 'reduced')")
    else:
        program.add("out(m, 'mapped')")


def nested_states(program: Program) -> None:
    """Keyed states whose values have nested types."""
    rng = program.random
    source(program)
    value, declared = rng.choice(TYPES)
    kind = rng.choice(["value", "list", "map"])
    opened, used = {
        "value": (
            f'ctx.get_state(ValueStateDescriptor("s", {declared}))',
            "now = self.s.value()\n        self.s.update(new)",
        ),
        "list": (
            f'ctx.get_list_state(ListStateDescriptor("s", {declared}))',
            "self.s.add(new)\n        now = list(self.s.get())",
        ),
        "map": (
            f'ctx.get_map_state(MapStateDescriptor("s", Types.INT(), {declared}))',
            "now = self.s.get(v[1])\n        self.s.put(v[1], new)",
        ),
    }[kind]
    program.define("from pyflink.common import Instant")
    program.define(
        "class Keep(KeyedProcessFunction):\n"
        "    def open(self, ctx):\n"
        f"        self.s = {opened}\n\n"
        "    def process_element(self, v, ctx):\n"
        f"        new = {value}\n"
        f"        {used}\n"
        "        yield repr((v[0], now))"
    )
    program.add(
        "out(s.key_by(lambda v: v[0], key_type=Types.STRING()).process(Keep(), output_type=Types.STRING()), 'kept')"
    )


LOOPS = [
    "for k in list(self.s.keys()):\n            if k % 2:\n                self.s.remove(k)",
    "for k, n in list(self.s.items()):\n            self.s.put(k, n + 1)",
    "total = sum(self.s.values())\n        if total > 20:\n            self.s.clear()",
    (
        "for k in sorted(self.s):\n            self.s[k] = self.s[k] * 2\n            self.s.put(k + 100, 1)\n"
        "            break"
    ),
    "if v[1] in self.s:\n            self.s.remove(v[1])",
    "if self.s.is_empty():\n            self.s.put_all([(1, 1), (2, 2)])",
]


def changing_map_states(program: Program) -> None:
    """A map state that is changed by a loop over its own entries."""
    source(program)
    loops = "\n        ".join(program.random.sample(LOOPS, 3))
    program.define(
        "class Change(KeyedProcessFunction):\n"
        "    def open(self, ctx):\n"
        '        self.s = ctx.get_map_state(MapStateDescriptor("s", Types.INT(), Types.LONG()))\n\n'
        "    def process_element(self, v, ctx):\n"
        "        self.s.put(v[1], v[2])\n"
        f"        {loops}\n"
        "        yield repr((v[0], sorted(self.s.items()), self.s.contains(v[1])))"
    )
    program.add(
        "out(s.key_by(lambda v: v[0], key_type=Types.STRING()).process(Change(), output_type=Types.STRING()), 'map')"
    )


TRIGGER = """\
from pyflink.datastream.window import TimeWindow, Trigger, TriggerResult


class Own(Trigger):
    def on_element(self, element, timestamp, window, ctx):
        count = ctx.get_partitioned_state(
            ReducingStateDescriptor("count", lambda a, b: a + b, Types.LONG()))
        count.add(1)
        ctx.register_event_time_timer({timer})
        if count.get() >= {most}:
            {cleared}
            return TriggerResult.{reached}
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.{fired} if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        raise NotImplementedError

    def clear(self, window, ctx):
        ctx.get_partitioned_state(
            ReducingStateDescriptor("count", lambda a, b: a + b, Types.LONG())).clear()"""


def own_triggers(program: Program) -> None:
    """Windows with a trigger that is written in the program, with timers and state.

    In batch mode PyFlink's windows can deadlock, and lose records.
    """
    rng = program.random
    program.mode = "STREAMING"
    source(program, timed=True)
    program.define(
        TRIGGER.format(
            timer=rng.choice(["window.max_timestamp()", "window.max_timestamp()", "timestamp"]),
            most=rng.randint(1, 3),
            cleared=rng.choice(["count.clear()", "pass"]),
            reached=rng.choice(["FIRE", "FIRE_AND_PURGE", "PURGE"]),
            fired=rng.choice(["FIRE", "FIRE_AND_PURGE", "CONTINUE"]),
        )
    )
    program.define(
        "class InWindow(ProcessWindowFunction):\n"
        "    def process(self, key, context, elements):\n"
        "        yield repr((key, context.window().start, sorted(elements)))"
    )
    size = rng.choice([3, 10, 30])
    assigner = rng.choice(
        [
            f"TumblingEventTimeWindows.of(Time.seconds({size}))",
            f"SlidingEventTimeWindows.of(Time.seconds({size * 2}), Time.seconds({size}))",
        ]
    )
    program.add(
        f"out(s.key_by(lambda v: v[0], key_type=Types.STRING()).window({assigner}).trigger(Own())"
        ".process(InWindow(), output_type=Types.STRING()), 'windows')"
    )


def window_states(program: Program) -> None:
    """A window function with a state of the key or of the window; in streaming mode, like `own_triggers`."""
    rng = program.random
    program.mode = "STREAMING"
    source(program, timed=True)
    which = rng.choice(["global_state", "window_state"])
    trigger = rng.choice(["", f".trigger(CountTrigger.of({rng.randint(1, 3)}))"])
    program.define(
        "class InWindow(ProcessWindowFunction):\n"
        "    def process(self, key, context, elements):\n"
        f"        seen = context.{which}().get_state(ValueStateDescriptor('seen', Types.LONG()))\n"
        "        seen.update((seen.value() or 0) + len(list(elements)))\n"
        "        yield repr((key, context.window().start, seen.value()))\n\n"
        "    def clear(self, context):\n"
        + (
            "        context.window_state().get_state(ValueStateDescriptor('seen', Types.LONG())).clear()"
            if which == "window_state"
            else "        pass"
        )
    )
    size = rng.choice([3, 10])
    program.add(
        "out(s.key_by(lambda v: v[0], key_type=Types.STRING()).window(TumblingEventTimeWindows.of("
        f"Time.seconds({size}))){trigger}.process(InWindow(), output_type=Types.STRING()), 'windows')"
    )


COUNTER = """\
class Count{number}(KeyedProcessFunction):
    def open(self, ctx):
        self.n = ctx.get_reducing_state(
            ReducingStateDescriptor("n", lambda a, b: a + b, Types.LONG()))

    def process_element(self, v, ctx):
        self.n.add(v[1])
        yield v[0], self.n.get(), v[2]"""


def parallelism_between(program: Program) -> None:
    """Keyed operators in a row, each with its own parallelism; one may begin a chain or be alone in it."""
    rng = program.random
    # In batch mode Flink's sort may change the order of a key's records, and the counts are noted as they grow.
    program.mode = "STREAMING"
    program.add("env.set_parallelism(1)")
    source(program)
    program.add(f"env.set_parallelism({program.parallelism})")
    program.add("x = s")
    for number in range(rng.randint(2, 4)):
        program.define(COUNTER.format(number=number))
        program.add(
            f"x = x.key_by(lambda v: v[0], key_type=Types.STRING()).process(Count{number}(), output_type=Types.TUPLE("
            f"[Types.STRING(), Types.LONG(), Types.LONG()])).set_parallelism({rng.randint(1, 3)})"
            + rng.choice(["", ".start_new_chain()", ".disable_chaining()"])
        )
        if rng.random() < 0.5:
            program.add(
                "x = x.filter(lambda v: v[1] % 7 != 3).map(lambda v: (v[0], v[1] * 2, v[2]), output_type=Types.TUPLE("
                "[Types.STRING(), Types.LONG(), Types.LONG()]))"
                + rng.choice(["", ".disable_chaining()"])
            )
    program.add("out(x, 'x')")


def broadcast_sides(program: Program) -> None:
    """Rules that are broadcast, changed and removed, with a side output; in batch mode they come first."""
    rng = program.random
    program.mode = "BATCH"
    source(program, "s")
    rules = [(rng.choice("abc"), rng.randint(-1, 5)) for _ in range(rng.randint(2, 6))]
    program.add("env.set_parallelism(1)")
    program.add(f"r = env.from_collection({rules!r}, Types.TUPLE([Types.STRING(), Types.INT()]))")
    program.add(f"env.set_parallelism({program.parallelism})")
    keyed = rng.random() < 0.5
    base = "KeyedBroadcastProcessFunction" if keyed else "BroadcastProcessFunction"
    program.define(
        'RULES = MapStateDescriptor("rules", Types.STRING(), Types.LIST(Types.INT()))\n'
        'SIDE = OutputTag("side", Types.ROW([Types.STRING(), Types.INT()]))\n\n\n'
        f"class Ruled({base}):\n"
        "    def process_element(self, value, ctx):\n"
        "        rules = ctx.get_broadcast_state(RULES)\n"
        "        found = rules.get(value[0])\n"
        "        if found is None:\n"
        "            yield SIDE, Row(value[0], value[1])\n"
        "            return\n"
        "        yield repr((value, found, sorted(rules.keys())))\n\n"
        "    def process_broadcast_element(self, value, ctx):\n"
        "        rules = ctx.get_broadcast_state(RULES)\n"
        "        if value[1] < 0:\n"
        "            rules.remove(value[0])\n"
        "        else:\n"
        "            rules.put(value[0], (rules.get(value[0]) or []) + [value[1]])"
    )
    left = "s.key_by(lambda v: v[0], key_type=Types.STRING())" if keyed else "s"
    program.add(
        f"p = {left}.connect(r.broadcast(RULES)).process(Ruled(), output_type=Types.STRING())"
    )
    program.add("out(p, 'ruled')")
    program.add("out(p.get_side_output(SIDE), 'side')")


SHAPES = [
    *(nested_types, nested_types, nested_types, nested_states, nested_states),
    *(changing_map_states, own_triggers, own_triggers, window_states),
    *(parallelism_between, broadcast_sides),
]
FIRST, COUNT = 2000, 110


def further_program(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    shape = SHAPES[seed % len(SHAPES)]
    program = Program(rng, f"{seed:04}-{shape.__name__}")
    program.mode = rng.choice(["STREAMING", "STREAMING", "BATCH"])
    program.parallelism = rng.choice([1, 1, 2, 3])
    shape(program)
    return program
