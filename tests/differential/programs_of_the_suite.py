"""Random DataStream programs as Python text, made from a seed alone.

A program is a function `build(env, out)`; `out(stream, name)` notes the records of a stream. The text imports from
`pyflink`, so that PyFlink runs it as it stands; opchain runs it with the imports renamed. Programs keep to what
PyFlink itself decides: no result hangs on the clock, on threads, or on the order in which several inputs arrive.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

IMPORTS = """\
from pyflink.common import Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction, BroadcastProcessFunction, CoFlatMapFunction, CoMapFunction, CoProcessFunction,
    FilterFunction, FlatMapFunction, KeyedBroadcastProcessFunction, KeyedCoProcessFunction,
    KeyedProcessFunction, KeySelector, MapFunction, OutputTag, ProcessFunction, ReduceFunction,
    RuntimeExecutionMode,
)
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.functions import (
    AllWindowFunction, ProcessAllWindowFunction, ProcessWindowFunction, WindowFunction,
)
from pyflink.datastream.state import (
    AggregatingStateDescriptor, ListStateDescriptor, MapStateDescriptor, ReducingStateDescriptor,
    ValueStateDescriptor,
)
from pyflink.datastream.window import (
    ContinuousEventTimeTrigger, CountTrigger, EventTimeSessionWindows, EventTimeTrigger, GlobalWindows,
    PurgingTrigger, SlidingEventTimeWindows, TumblingEventTimeWindows,
)


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2] * 1000
"""

EVENTS = "Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()])"
"""The type of most sources: key, number, seconds."""


@dataclass
class Program:
    """One program in the making."""

    random: random.Random
    name: str
    mode: str = "STREAMING"
    parallelism: int = 1
    classes: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        self.lines.append(line)

    def define(self, text: str) -> None:
        self.classes.append(text)

    def text(self) -> str:
        body = "\n".join(f"    {line}" for part in self.lines for line in part.split("\n"))
        classes = "\n\n\n".join(self.classes)
        return f"{IMPORTS}\n\n{classes}\n\n\ndef build(env, out):\n{body}\n"


def events(program: Program, size: int | None = None, *, in_order: bool = False) -> str:
    """Source records (key, number, seconds) as a literal."""
    rng = program.random
    count = size or rng.randint(1, 12)
    keys = rng.sample(["a", "b", "c", "dd", "", "é", "key-7"], rng.randint(1, 4))
    records = [(rng.choice(keys), rng.randint(-5, 20), rng.randint(0, 40)) for _ in range(count)]
    if in_order:
        records.sort(key=lambda record: record[2])
    return repr(records)


def source(
    program: Program, name: str = "s", *, timed: bool = False, in_order: bool = False
) -> str:
    """A stream of events; with timestamps if asked."""
    text = f"env.from_collection({events(program, in_order=in_order)}, {EVENTS})"
    if timed:
        # No watermark overtakes a record, and one subtask keeps the order of records.
        text += (
            "\\\n    .assign_timestamps_and_watermarks(WatermarkStrategy"
            ".for_bounded_out_of_orderness(Duration.of_seconds(60)).with_timestamp_assigner(At()))"
        )
        program.add("env.set_parallelism(1)")
        program.add(f"{name} = {text}")
        program.add(f"env.set_parallelism({program.parallelism})")
        return name
    program.add(f"{name} = {text}")
    return name


MAPS = [
    ("lambda v: v[1] * 2", "Types.INT()"),
    ("lambda v: v[1] / 4", "Types.DOUBLE()"),
    ("lambda v: v[1] / 4", "Types.FLOAT()"),
    ("lambda v: v[1] / 4", "Types.INT()"),
    ("lambda v: v[1] / 4", "Types.LONG()"),
    ("lambda v: v[1]", "Types.DOUBLE()"),
    ("lambda v: v[1] > 3", "Types.BOOLEAN()"),
    ("lambda v: int(v[1] > 3)", "Types.BOOLEAN()"),
    ("lambda v: v[1] > 3", "Types.INT()"),
    ("lambda v: v[0] + str(v[1])", "Types.STRING()"),
    ("lambda v: v[1] % 100", "Types.BYTE()"),
    ("lambda v: v[1] * 100", "Types.SHORT()"),
    ("lambda v: (v[0], v[1])", "Types.TUPLE([Types.STRING(), Types.LONG()])"),
    ("lambda v: (v[0], v[1] / 2)", "Types.TUPLE([Types.STRING(), Types.INT()])"),
    ("lambda v: (v[0], v[1], v[2])", "Types.TUPLE([Types.STRING(), Types.DOUBLE()])"),
    ("lambda v: Row(v[0], v[1])", "Types.ROW([Types.STRING(), Types.INT()])"),
    ("lambda v: Row(v[0], v[1])", "Types.ROW_NAMED(['k', 'n'], [Types.STRING(), Types.FLOAT()])"),
    (
        "lambda v: Row(n=v[1] / 8, k=v[0])",
        "Types.ROW_NAMED(['k', 'n'], [Types.STRING(), Types.INT()])",
    ),
    ("lambda v: Row(v[0], None)", "Types.ROW_NAMED(['k', 'n'], [Types.STRING(), Types.INT()])"),
    ("lambda v: [v[1] / 2, 1]", "Types.LIST(Types.INT())"),
    ("lambda v: [v[0], None]", "Types.BASIC_ARRAY(Types.STRING())"),
    ("lambda v: [v[1], v[1] * 0.1]", "Types.PRIMITIVE_ARRAY(Types.FLOAT())"),
    ("lambda v: {v[0]: v[1] / 2}", "Types.MAP(Types.STRING(), Types.INT())"),
    (
        "lambda v: [(v[0], v[1] / 2)]",
        "Types.OBJECT_ARRAY(Types.TUPLE([Types.STRING(), Types.INT()]))",
    ),
    ("lambda v: (v[0], v[1])", None),
    ("lambda v: {'k': v[0], 'n': [v[1]]}", None),
    ("lambda v: -1 if v[1] > 5 else v[1]", None),
    ("lambda v: __import__('decimal').Decimal(v[1]) / 3", "Types.BIG_DEC()"),
    ("lambda v: __import__('datetime').date(2020, 1, 1 + v[1] % 28)", "Types.SQL_DATE()"),
    ("lambda v: __import__('datetime').time(v[1] % 24, 3, 4, 567891)", "Types.SQL_TIME()"),
    (
        "lambda v: __import__('datetime').datetime(2020, 1, 2, v[1] % 24, 3, 4, 567891)",
        "Types.SQL_TIMESTAMP()",
    ),
    ("lambda v: v[0].encode()", "Types.PRIMITIVE_ARRAY(Types.BYTE())"),
]
"""Functions of an event, and types that PyFlink writes their values as."""


def typed(declared: str | None) -> str:
    return "" if declared is None else f", output_type={declared}"


def mapped_types(program: Program) -> None:
    """Values that are declared as a type cross to Java, or not, and are looked at."""
    source(program)
    function, declared = program.random.choice(MAPS)
    shape = program.random.choice(["crossing", "chained", "forked", "filtered", "keyed", "union"])
    program.add(f"m = s.map({function}{typed(declared)})")
    if shape == "chained":
        program.add("out(m.map(lambda v: repr(v), output_type=Types.STRING()), 'in chain')")
    elif shape == "forked":
        program.add("out(m.map(lambda v: repr(v), output_type=Types.STRING()), 'one')")
        program.add("out(m, 'two')")
    elif shape == "filtered":
        program.add("out(m.filter(lambda v: True), 'filtered')")
    elif shape == "keyed":
        program.add(
            "out(m.key_by(lambda v: repr(v)).map(lambda v: repr(v), output_type=Types.STRING()), 'keyed')"
        )
    elif shape == "union":
        program.add("out(m.union(s.map(" + function + typed(declared) + ")), 'union')")
    else:
        program.add("out(m, 'mapped')")


def stateless(program: Program) -> None:
    """Maps, filters and flat maps in a chain."""
    rng = program.random
    name = source(program)
    program.add(f"x = {name}.map(lambda v: v[1], output_type=Types.INT())")
    for _ in range(rng.randint(1, 4)):
        step = rng.choice(
            [
                f"x = x.map(lambda v: v + {rng.randint(1, 9)}, output_type=Types.INT())",
                f"x = x.filter(lambda v: v % {rng.randint(2, 4)} != 0)",
                f"x = x.flat_map(lambda v: range(v % {rng.randint(2, 5)}), output_type=Types.INT())",
                f"x = x.map(lambda v: v * {rng.choice(['0.5', '2', '-1'])}, output_type=Types.{rng.choice(['INT', 'LONG', 'DOUBLE', 'FLOAT'])}()).map(lambda v: int(v), output_type=Types.INT())",
                "x = x.union(x.map(lambda v: -v, output_type=Types.INT()))",
                f"x = x.{rng.choice(['rebalance', 'rescale', 'shuffle', 'forward', 'disable_chaining'])}()"
                if program.parallelism == 1
                else "x = x.rebalance()",
                f"x = x.partition_custom(lambda key, n: key % n, lambda v: v + {rng.randint(0, 3)})",
            ]
        )
        if "disable_chaining" in step or "forward" in step:
            step = "x = x.map(lambda v: v, output_type=Types.INT()).disable_chaining()"
        program.add(step)
    program.add("out(x, 'x')")


def keyed_functions(program: Program) -> None:
    """Reduces, aggregations and rich functions with keyed state."""
    rng = program.random
    source(program)
    key_type = rng.choice([", key_type=Types.STRING()", ""])
    program.add(f"k = s.key_by(lambda v: v[0]{key_type})")
    which = rng.randrange(6)
    if which == 0:
        program.add("out(k.reduce(lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2]))), 'reduced')")
    elif which == 1:
        call = rng.choice(["sum", "min", "max", "min_by", "max_by"])
        program.add(f"out(k.{call}({rng.choice([1, 2])}), 'aggregated')")
    elif which == 2:
        program.define(COUNTING_MAP)
        program.add(
            "out(k.map(Counted(), output_type=Types.TUPLE([Types.STRING(), Types.INT()])), 'counted')"
        )
    elif which == 3:
        program.define(DEDUPLICATION)
        program.add("out(k.filter(FirstOnly()), 'first')")
    elif which == 4:
        program.define(SPREADING)
        program.add("out(k.flat_map(Seen(), output_type=Types.LIST(Types.INT())), 'seen')")
    else:
        wanted = rng.randint(1, 3)
        program.add(
            f"out(k.reduce(lambda a, b: (b[0], a[1] + b[1], b[2])).filter(lambda v: v[1] % {wanted} == 0)"
            ".map(lambda v: v[1] / 2, output_type=Types.INT()), 'reduced')"
        )


COUNTING_MAP = """\
class Counted(MapFunction):
    def open(self, ctx):
        self.count = ctx.get_state(ValueStateDescriptor("count", Types.INT()))

    def map(self, value):
        count = (self.count.value() or 0) + value[1]
        self.count.update(count)
        return value[0], count"""

DEDUPLICATION = """\
class FirstOnly(FilterFunction):
    def open(self, ctx):
        self.seen = ctx.get_map_state(MapStateDescriptor("seen", Types.INT(), Types.BOOLEAN()))

    def filter(self, value):
        is_new = not self.seen.contains(value[1])
        self.seen.put(value[1], True)
        return is_new"""

SPREADING = """\
class Seen(FlatMapFunction):
    def open(self, ctx):
        self.values = ctx.get_list_state(ListStateDescriptor("values", Types.INT()))

    def flat_map(self, value):
        self.values.add(value[1])
        held = list(self.values.get())
        if len(held) == 3:
            self.values.clear()
            yield held"""

STATES = {
    "value": (
        'ctx.get_state(ValueStateDescriptor("s", Types.{type}()))',
        "old = self.s.value()\nself.s.update({value} if old is None else old + {value})\nnow = self.s.value()",
    ),
    "list": (
        'ctx.get_list_state(ListStateDescriptor("s", Types.{type}()))',
        "self.s.add({value})\nnow = list(self.s.get())",
    ),
    "map": (
        'ctx.get_map_state(MapStateDescriptor("s", Types.LONG(), Types.{type}()))',
        "self.s.put(value[2], {value})\nnow = sorted(self.s.items())",
    ),
    "reducing": (
        'ctx.get_reducing_state(ReducingStateDescriptor("s", lambda a, b: a + b, Types.{type}()))',
        "self.s.add({value})\nnow = self.s.get()",
    ),
    "aggregating": (
        'ctx.get_aggregating_state(AggregatingStateDescriptor("s", Mean(), Types.TUPLE([Types.LONG(), Types.INT()])))',
        "self.s.add(value[1])\nnow = self.s.get()",
    ),
}

MEAN = """\
class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] * 100 // max(1, accumulator[1])

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]"""


def keyed_process(program: Program) -> None:
    """A keyed process function with a state of any kind, event-time timers, and a side output."""
    rng = program.random
    source(program, timed=True)
    kind = rng.choice(sorted(STATES))
    type_name, value = rng.choice(
        [
            ("INT", "value[1]"),
            ("LONG", "value[1]"),
            ("DOUBLE", "value[1] * 0.5"),
            ("STRING", "str(value[1])"),
        ]
    )
    if kind == "aggregating":
        program.define(MEAN)
    opened, used = STATES[kind]
    timer = rng.choice(["ctx.timestamp() + {n}", "(ctx.timestamp() // {n} + 1) * {n}"]).format(
        n=rng.choice([1, 1000, 10_000])
    )
    deletes = rng.random() < 0.3
    has_side = rng.random() < 0.4
    lines = [
        "class Process(KeyedProcessFunction):",
        "    def open(self, ctx):",
        f"        self.s = {opened.format(type=type_name)}",
        '        self.timers = ctx.get_state(ValueStateDescriptor("timers", Types.LONG()))',
        "",
        "    def process_element(self, value, ctx):",
        *(f"        {line}" for line in used.format(value=value).split("\n")),
        "        timer = " + timer,
        "        ctx.timer_service().register_event_time_timer(timer)",
    ]
    if deletes:
        lines += [
            "        if self.timers.value() is not None:",
            "            ctx.timer_service().delete_event_time_timer(self.timers.value())",
            "        self.timers.update(timer)",
        ]
    if has_side:
        program.define('SIDE = OutputTag("side", Types.LONG())')
        lines += ["        if value[1] % 2:", "            yield SIDE, value[2]"]
    lines += [
        "        yield repr(('element', ctx.get_current_key(), now, ctx.timestamp()))",
        "",
        "    def on_timer(self, timestamp, ctx):",
        "        yield repr(('timer', ctx.get_current_key(), timestamp))",
    ]
    if rng.random() < 0.5:
        lines += ["        self.s.clear()"]
    program.define("\n".join(lines))
    program.add(
        "p = s.key_by(lambda v: v[0], key_type=Types.STRING()).process(Process(), output_type=Types.STRING())"
    )
    program.add("out(p, 'main')")
    if has_side:
        program.add("out(p.get_side_output(SIDE), 'side')")


WINDOWS = [
    "TumblingEventTimeWindows.of(Time.seconds({n}))",
    "TumblingEventTimeWindows.of(Time.seconds({n}), Time.seconds(1))",
    "SlidingEventTimeWindows.of(Time.seconds({n}), Time.seconds({m}))",
    "EventTimeSessionWindows.with_gap(Time.seconds({n}))",
    "EventTimeSessionWindows.with_dynamic_gap(Gap())",
]

GAP = """\
from pyflink.datastream.window import SessionWindowTimeGapExtractor


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return element[1] * 100 + 1000"""

WINDOW_FUNCTIONS = {
    "process": """\
class InWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        w = context.window()
        yield repr((key, w.start, w.end, sorted(elements)))""",
    "apply": """\
class InWindow(WindowFunction):
    def apply(self, key, window, inputs):
        return [repr((key, window.start, window.end, len(list(inputs))))]""",
    "state": """\
class InWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        calls = context.global_state().get_state(ValueStateDescriptor("calls", Types.INT()))
        calls.update((calls.value() or 0) + 1)
        mine = context.window_state().get_state(ValueStateDescriptor("mine", Types.INT()))
        mine.update((mine.value() or 0) + 1)
        yield repr((key, context.window().end, calls.value(), mine.value(), len(list(elements))))

    def clear(self, context):
        context.window_state().get_state(ValueStateDescriptor("mine", Types.INT())).clear()""",
}

SUMMING = """\
class Summing(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b"""


def windowed(program: Program) -> None:
    """Event-time windows of all kinds with triggers and functions."""
    rng = program.random
    source(program, timed=True)
    assigner = rng.choice(WINDOWS).format(n=rng.choice([4, 6, 10]), m=rng.choice([2, 3]))
    is_session = "Session" in assigner
    if "Gap()" in assigner:
        program.define(GAP)
    chain = f"s.key_by(lambda v: v[0], key_type=Types.STRING()).window({assigner})"
    trigger = rng.choice(["", "", "", "purging", "count", "event"])
    if trigger == "count" and not is_session:
        chain += f".trigger(CountTrigger.of({rng.randint(1, 3)}))"
    elif trigger == "purging" and not is_session:
        chain += f".trigger(PurgingTrigger.of(CountTrigger.of({rng.randint(1, 3)})))"
    elif trigger == "event":
        chain += ".trigger(EventTimeTrigger.create())"
    if rng.random() < 0.3:
        chain += f".allowed_lateness({rng.choice([0, 2000])})"
    which = rng.randrange(6)
    if which == 0:
        program.add(
            f"out({chain}.reduce(lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2]))), 'windows')"
        )
    elif which == 1:
        program.define(SUMMING)
        program.add(
            f"out({chain}.aggregate(Summing(), accumulator_type=Types.LONG(), output_type=Types.LONG()), 'windows')"
        )
    elif which == 2:
        program.define(SUMMING)
        program.define(
            "class InWindow(ProcessWindowFunction):\n"
            "    def process(self, key, context, elements):\n"
            "        yield repr((key, context.window().start, list(elements)))"
        )
        program.add(
            f"out({chain}.aggregate(Summing(), window_function=InWindow(), accumulator_type=Types.LONG(), "
            "output_type=Types.STRING()), 'windows')"
        )
    else:
        kind = rng.choice(["process", "apply"] if is_session else sorted(WINDOW_FUNCTIONS))
        program.define(WINDOW_FUNCTIONS[kind])
        call = "apply" if kind == "apply" else "process"
        program.add(f"out({chain}.{call}(InWindow(), output_type=Types.STRING()), 'windows')")


def count_windows(program: Program) -> None:
    """Count windows, keyed and of all records, and global windows with triggers."""
    rng = program.random
    source(program)
    which = rng.randrange(4)
    size, slide = rng.randint(2, 4), rng.randint(1, 2)
    keyed = "s.key_by(lambda v: v[0], key_type=Types.STRING())"
    reducing = ".reduce(lambda a, b: (a[0], a[1] + b[1], b[2]))"
    if which == 0:
        program.add(f"out({keyed}.count_window({size}){reducing}, 'windows')")
    elif which == 1:
        program.add(f"out({keyed}.count_window({size}, {slide}){reducing}, 'windows')")
    elif which == 2:
        trigger = f"PurgingTrigger.of(CountTrigger.of({size}))"
        program.add(
            f"out({keyed}.window(GlobalWindows.create()).trigger({trigger}){reducing}, 'windows')"
        )
    else:
        program.define(
            "class All(ProcessAllWindowFunction):\n"
            "    def process(self, context, elements):\n"
            "        yield repr(sorted(elements))"
        )
        program.add(
            f"out(s.window_all(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of({size}))).process(All(), output_type=Types.STRING()), 'windows')"
        )


def all_windows(program: Program) -> None:
    """Event-time windows of all records."""
    rng = program.random
    source(program, timed=True)
    assigner = rng.choice(WINDOWS[:4]).format(n=rng.choice([5, 10]), m=rng.choice([2, 5]))
    if rng.random() < 0.5:
        program.define(
            "class All(ProcessAllWindowFunction):\n"
            "    def process(self, context, elements):\n"
            "        yield repr((context.window().start, context.window().end, sorted(elements)))"
        )
        program.add(
            f"out(s.window_all({assigner}).process(All(), output_type=Types.STRING()), 'windows')"
        )
    else:
        program.define(
            "class All(AllWindowFunction):\n"
            "    def apply(self, window, inputs):\n"
            "        yield repr((window.start, window.max_timestamp(), len(list(inputs))))"
        )
        program.add(
            f"out(s.window_all({assigner}).apply(All(), output_type=Types.STRING()), 'windows')"
        )


CONNECTED = {
    "co_map": (
        "class Both(CoMapFunction):\n"
        "    def map1(self, value):\n"
        "        return 'left', value[1]\n\n"
        "    def map2(self, value):\n"
        "        return None if value[1] < 0 else ('right', value[1] / 2)",
        "s.connect(t).map(Both(), output_type=Types.TUPLE([Types.STRING(), Types.{type}()]))",
    ),
    "co_flat_map": (
        "class Both(CoFlatMapFunction):\n"
        "    def flat_map1(self, value):\n"
        "        yield from range(value[1] % 3)\n\n"
        "    def flat_map2(self, value):\n"
        "        return [value[1] * 10]",
        "s.connect(t).flat_map(Both(), output_type=Types.{type}())",
    ),
    "keyed_co_process": (
        "class Both(KeyedCoProcessFunction):\n"
        "    def open(self, ctx):\n"
        '        self.left = ctx.get_list_state(ListStateDescriptor("left", Types.INT()))\n'
        '        self.right = ctx.get_list_state(ListStateDescriptor("right", Types.INT()))\n\n'
        "    def process_element1(self, value, ctx):\n"
        "        self.left.add(value[1])\n"
        "        ctx.timer_service().register_event_time_timer(10**12)\n\n"
        "    def process_element2(self, value, ctx):\n"
        "        self.right.add(value[1])\n"
        "        ctx.timer_service().register_event_time_timer(10**12)\n\n"
        "    def on_timer(self, timestamp, ctx):\n"
        "        yield repr((ctx.get_current_key(), sorted(self.left.get()), sorted(self.right.get())))",
        "s.connect(t).key_by(lambda v: v[0], lambda v: v[0], key_type=Types.STRING())"
        ".process(Both(), output_type=Types.STRING())",
    ),
    "co_process": (
        "class Both(CoProcessFunction):\n"
        "    def process_element1(self, value, ctx):\n"
        "        yield 'left ' + value[0]\n\n"
        "    def process_element2(self, value, ctx):\n"
        "        yield 'right %s' % value[1]",
        "s.connect(t).process(Both(), output_type=Types.STRING())",
    ),
}


def connected(program: Program) -> None:
    """Two streams whose function does not care which comes first."""
    rng = program.random
    source(program, "s", timed=True)
    source(program, "t", timed=True)
    define, chain = CONNECTED[rng.choice(sorted(CONNECTED))]
    program.define(define)
    program.add(f"out({chain.replace('{type}', rng.choice(['INT', 'LONG', 'DOUBLE']))}, 'both')")


def broadcast(program: Program) -> None:
    """Rules that are broadcast; in batch mode they come first."""
    rng = program.random
    program.mode = "BATCH"
    source(program, "s")
    rules = [(rng.choice("abc"), rng.randint(0, 9)) for _ in range(rng.randint(1, 4))]
    program.add(f"r = env.from_collection({rules!r}, Types.TUPLE([Types.STRING(), Types.INT()]))")
    keyed = rng.random() < 0.5
    base = "KeyedBroadcastProcessFunction" if keyed else "BroadcastProcessFunction"
    program.define(
        'RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())\n\n\n'
        f"class Ruled({base}):\n"
        "    def process_element(self, value, ctx):\n"
        "        rules = ctx.get_broadcast_state(RULES)\n"
        "        if rules.contains(value[0]) and value[1] >= rules.get(value[0]):\n"
        "            yield repr((value, sorted(rules.items())))\n\n"
        "    def process_broadcast_element(self, value, ctx):\n"
        "        ctx.get_broadcast_state(RULES).put(value[0], value[1])"
    )
    left = "s.key_by(lambda v: v[0], key_type=Types.STRING())" if keyed else "s"
    program.add(
        f"out({left}.connect(r.broadcast(RULES)).process(Ruled(), output_type=Types.STRING()), 'ruled')"
    )


def side_outputs(program: Program) -> None:
    """Side outputs with types of their own, chained further."""
    rng = program.random
    source(program)
    type_name, value = rng.choice(
        [
            ("Types.INT()", "value[1]"),
            ("Types.STRING()", "value[0]"),
            ("Types.DOUBLE()", "value[1]"),
            ("Types.INT()", "value[1] / 2"),
            ("Types.ROW([Types.INT()])", "Row(value[1] / 2)"),
        ]
    )
    program.define(
        f'ODD = OutputTag("odd", {type_name})\n\n\n'
        "class Split(ProcessFunction):\n"
        "    def process_element(self, value, ctx):\n"
        "        if value[1] % 2:\n"
        f"            yield ODD, {value}\n"
        "        else:\n"
        "            yield value[1] * 0.5"
    )
    program.add(
        f"p = s.process(Split(), output_type=Types.{rng.choice(['DOUBLE', 'INT', 'FLOAT'])}())"
    )
    program.add("out(p, 'main')")
    program.add("out(p.get_side_output(ODD), 'odd')")
    if rng.random() < 0.5:
        program.add(
            "out(p.get_side_output(ODD).map(lambda v: repr(v), output_type=Types.STRING()), 'chained')"
        )


KEYS = [
    ("v[0]", "Types.STRING()"),
    ("v[1]", "Types.INT()"),
    ("v[2]", "Types.LONG()"),
    ("v[1] / 2", "Types.DOUBLE()"),
    ("v[1] / 2", "Types.INT()"),
    ("v[1] > 3", "Types.BOOLEAN()"),
    ("(v[0], v[1] % 3)", "Types.TUPLE([Types.STRING(), Types.INT()])"),
    ("Row(v[0], v[1] % 3)", "Types.ROW([Types.STRING(), Types.INT()])"),
    ("v[0]", None),
    ("v[1]", None),
    ("v[1] / 2", None),
    ("v[1] > 3", None),
    ("(v[0], v[1] % 3)", None),
    ("None if v[1] > 3 else v[1]", None),
    ("None", None),
    ("frozenset([v[1] % 3])", None),
    ("{'k': v[0]}", None),
    ("[v[0]]", None),
]


def keys(program: Program) -> None:
    """Keys of all types, and the subtask that holds each."""
    rng = program.random
    program.parallelism = rng.randint(1, 3)
    source(program)
    key, declared = rng.choice(KEYS)
    program.define(
        "class Where(KeyedProcessFunction):\n"
        "    def open(self, ctx):\n"
        "        self.subtask = ctx.get_index_of_this_subtask()\n"
        '        self.count = ctx.get_state(ValueStateDescriptor("count", Types.INT()))\n\n'
        "    def process_element(self, value, ctx):\n"
        "        count = (self.count.value() or 0) + 1\n"
        "        self.count.update(count)\n"
        "        yield repr((ctx.get_current_key(), count, self.subtask))"
    )
    key_type = "" if declared is None else f", key_type={declared}"
    program.add(
        f"out(s.key_by(lambda v: {key}{key_type}).process(Where(), output_type=Types.STRING()), 'keys')"
    )


SOURCES = [
    ("[1, 2, 3, 2**31, 2**40, -5]", "Types.INT()"),
    ("[1, 2, 3]", "Types.LONG()"),
    ("[1, 2, 300]", "Types.SHORT()"),
    ("[1.0, 2.0]", "Types.DOUBLE()"),
    ("[0.1, 2.5]", "Types.FLOAT()"),
    ("[0.1, 2.5]", "Types.DOUBLE()"),
    ("['a', 'é', '']", "Types.STRING()"),
    ("[True, False]", "Types.BOOLEAN()"),
    ("[1, 'a', 2.5, None, (1, 2), [3], {'k': 1}]", None),
    ("[(1, 'a'), (2, 'b')]", "Types.TUPLE([Types.INT(), Types.STRING()])"),
    ("[(1, 'a'), (2, 'b')]", "Types.ROW([Types.INT(), Types.STRING()])"),
    ("[Row(1, 'a'), Row(2, None)]", "Types.ROW_NAMED(['n', 's'], [Types.INT(), Types.STRING()])"),
    ("[(1, [1, 2])]", "Types.TUPLE([Types.INT(), Types.LIST(Types.INT())])"),
    ("['x', 'y', '']", "Types.STRING()"),
    ("[{'a': 1}]", "Types.MAP(Types.STRING(), Types.LONG())"),
    ("[[1, 2], [3]]", "Types.PRIMITIVE_ARRAY(Types.INT())"),
    ("[['a', 'b']]", "Types.BASIC_ARRAY(Types.STRING())"),
    ("[__import__('decimal').Decimal('1.50')]", "Types.BIG_DEC()"),
    ("[__import__('datetime').date(2020, 1, 2)]", "Types.SQL_DATE()"),
    ("[__import__('datetime').time(1, 2, 3, 456000)]", "Types.SQL_TIME()"),
    ("[__import__('datetime').datetime(2020, 1, 2, 3, 4, 5, 678000)]", "Types.SQL_TIMESTAMP()"),
]


def sources(program: Program) -> None:
    """Collections of all types, and sequences."""
    rng = program.random
    if rng.random() < 0.2:
        low = rng.randint(-3, 3)
        numbers = f"NumberSequenceSource({low}, {low + rng.randint(0, 9)})"
        program.add(
            f"s = env.from_source({numbers}, WatermarkStrategy.no_watermarks(), 'n', Types.LONG())"
        )
    else:
        records, declared = rng.choice(SOURCES)
        program.add(
            f"s = env.from_collection({records}{'' if declared is None else ', ' + declared})"
        )
    step = rng.choice(
        [
            "",
            ".map(lambda v: v)",
            ".filter(lambda v: v is not None)",
            ".map(lambda v: repr(v), output_type=Types.STRING())",
        ]
    )
    program.add(f"out(s{step}, 'source')")


SHAPES: list[tuple[int, Callable[[Program], None]]] = [
    (6, mapped_types),
    (4, stateless),
    (5, keyed_functions),
    (6, keyed_process),
    (6, windowed),
    (3, count_windows),
    (2, all_windows),
    (4, connected),
    (3, broadcast),
    (4, side_outputs),
    (5, keys),
    (4, sources),
]

RANDOM_PROGRAMS = 1160


def random_program(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    weights = [weight for weight, _ in SHAPES]
    ((_, shape),) = rng.choices(SHAPES, weights)
    program = Program(rng, f"{seed:04}-{shape.__name__}")
    program.mode = rng.choice(["STREAMING", "STREAMING", "BATCH"])
    program.parallelism = rng.choice([1, 1, 2, 3])
    shape(program)
    return program
