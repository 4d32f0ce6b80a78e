"""Random programs as source text: one entry of each table that a program mentions.

`combined_program` gives a module with `draw(env)`, whose results reach `seen(stream, "results")`. A word in capitals
stands for an entry of its table in `TABLES`. `K` and `N` are the key and the number of a record `v`.
"""

from __future__ import annotations

import random
import re
from textwrap import indent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM = """
import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from epoch_runs import given
from forms import seen
from opchain.common import Duration, Row, Time, Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner, WatermarkGenerator
from opchain.datastream import OutputTag
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.formats.csv import CsvReaderFormat, CsvSchema
from opchain.datastream.formats.json import JsonReaderFormat
from opchain.datastream.formats.parquet import ParquetColumnarRowInputFormat
from opchain.datastream.functions import *
from opchain.datastream.state import *
from opchain.datastream.window import *
from opchain.table import DataTypes

TAG = OutputTag("tag", Types.PICKLED_BYTE_ARRAY())
ASIDE = OutputTag("late", Types.PICKLED_BYTE_ARRAY())
NUMBERS = MapStateDescriptor("numbers", Types.INT(), Types.INT())
ROWS = Types.ROW_NAMED(["k", "n"], [Types.INT(), Types.INT()])
COLUMNS = DataTypes.ROW([DataTypes.FIELD("k", DataTypes.INT()), DataTypes.FIELD("n", DataTypes.INT())])
CSV = CsvSchema.builder().add_number_column("k").add_number_column("n").build()

class Named(NamedTuple):
    k: int
    n: int

@dataclass
class Data:
    k: int
    n: int

class Times(TimestampAssigner):
    def extract_timestamp(self, v, record_timestamp):
        return N * 7 % 10

class Punctuated(WatermarkGenerator):
    def on_event(self, v, timestamp, output):
        if timestamp % 2:
            output.emit_watermark(timestamp)

    def on_periodic_emit(self, output):
        pass

class KeyOf(KeySelector):
    def get_key(self, v):
        return K

class Gap(SessionWindowTimeGapExtractor):
    def extract(self, v):
        return N % 3 + 1

class Twice(Trigger):
    numbers = ReducingStateDescriptor("numbers", lambda a, b: a + b, Types.LONG())

    def on_element(self, v, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        numbers = ctx.get_partitioned_state(self.numbers)
        numbers.add(N)
        if numbers.get() > 6:
            numbers.clear()
            return TriggerResult.FIRE_AND_PURGE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE

    def on_merge(self, window, ctx):
        ctx.merge_partitioned_state(self.numbers)

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.numbers).clear()

class Total(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, v, accumulator):
        return accumulator[0] + 1, accumulator[1] + N

    def get_result(self, accumulator):
        return accumulator[1], accumulator[0]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]

class Lists(AggregateFunction):
    def create_accumulator(self):
        return []

    def add(self, v, accumulator):
        accumulator.append(v)
        return accumulator

    def get_result(self, accumulator):
        return list(accumulator)

    def merge(self, a, b):
        return a + b

class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b

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

class Either(CoMapFunction):
    def map1(self, value):
        return value, 1

    def map2(self, value):
        return value, 2

def number(v):
    return N

def written(name, data):
    path = Path(__file__).with_name(name)
    path.write_text(data)
    return str(path)

def parquet(name):
    import pyarrow, pyarrow.parquet
    path = str(Path(__file__).with_name(name))
    columns = {"k": pyarrow.array([x % 3 for x in range(10)], "int32"), "n": pyarrow.array(range(10), "int32")}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path

CLASS

def draw(env):
    stream = SOURCE
    stream = TIMES
    stream = stream.key_by(KEYS)
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
    "a CSV file": (
        """env.from_source(
        FileSource.for_record_stream_format(
            CsvReaderFormat.for_schema(CSV),
            written("a.csv", "".join(f"{x % 3},{x}\\n" for x in range(10))),
        ).build(), STRATEGY, "file")""",
        "v.k",
        "v.n",
    ),
    "JSON files": (
        """env.from_source(
        FileSource.for_record_stream_format(
            JsonReaderFormat.for_type(COLUMNS),
            written("a.json", "".join(json.dumps({"k": x % 3, "n": x}) + "\\n" for x in range(4))),
            written("b.json", "".join(json.dumps({"k": x % 3, "n": x}) + "\\n" for x in range(4, 10))),
        ).build(), STRATEGY, "file")""",
        "v['k']",
        "v['n']",
    ),
    "JSON lines": (
        """env.from_source(
        FileSource.for_record_stream_format(
            StreamFormat.text_line_format(),
            written("a.txt", "".join(json.dumps({"k": x % 3, "n": x}) + "\\n" for x in range(10))),
        ).build(), WatermarkStrategy.no_watermarks(), "file").map(json.loads)""",
        "v['k']",
        "v['n']",
    ),
    "a Parquet file": (
        """env.from_source(
        FileSource.for_bulk_file_format(
            ParquetColumnarRowInputFormat(COLUMNS), parquet("a.parquet")
        ).build(), STRATEGY, "file")""",
        "v[0]",
        "v.n",
    ),
}
"""By name: the stream, and the key and number of its records `v`."""

STRATEGIES = {
    "monotonous times": "WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times())",
    "times out of order": "WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)).with_timestamp_assigner(Times())",
    "an idle source": """WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3)).with_timestamp_assigner(
        Times()).with_idleness(Duration.of_seconds(60))""",
    "watermarks of records": "WatermarkStrategy.for_generator(lambda context: Punctuated()).with_timestamp_assigner(Times())",
}

TIMES = {
    "times of the source": "stream",
    "assigned times": "stream.assign_timestamps_and_watermarks(STRATEGY)",
    "times assigned after an exchange": "stream.rebalance().assign_timestamps_and_watermarks(STRATEGY)",
    "times assigned after a map": "stream.map(lambda v: v).assign_timestamps_and_watermarks(STRATEGY)",
}

KEYS = {
    "the key": "lambda v: K",
    "a selector": "KeyOf()",
    "a declared text": "lambda v: str(K), Types.STRING()",
    "a pair": "lambda v: (K, N % 2)",
    "a declared pair": "lambda v: (str(K), N % 2), Types.TUPLE([Types.STRING(), Types.INT()])",
    "a Row": "lambda v: Row(K, N % 2)",
    "a float": "lambda v: N / 2",
    "a truth value": "lambda v: N > 4, Types.BOOLEAN()",
    "keys of several types": "lambda v: K if N % 2 else str(K)",
    "bytes": "lambda v: str(K).encode()",
    "one key": "lambda v: 1",
    "None": "lambda v: None if N % 2 else K",
    "a named tuple": "lambda v: Named(K, 1)",
}

WINDOWS = {
    "tumbling": "window(TumblingEventTimeWindows.of(Time.milliseconds(4)))",
    "tumbling with an offset": "window(TumblingEventTimeWindows.of(Time.milliseconds(4), Time.milliseconds(1)))",
    "sliding": "window(SlidingEventTimeWindows.of(Time.milliseconds(6), Time.milliseconds(2)))",
    "sliding with gaps": "window(SlidingEventTimeWindows.of(Time.milliseconds(2), Time.milliseconds(3)))",
    "sessions": "window(EventTimeSessionWindows.with_gap(Time.milliseconds(2)))",
    "sessions with their gaps": "window(EventTimeSessionWindows.with_dynamic_gap(Gap()))",
    "of two years": "window(TumblingProcessingTimeWindows.of(Time.days(730)))",
    "of two years, each year": "window(SlidingProcessingTimeWindows.of(Time.days(730), Time.days(365)))",
    "sessions of years": "window(ProcessingTimeSessionWindows.with_gap(Time.days(500)))",
    "by count": "window(CountTumblingWindowAssigner.of(2))",
    "sliding by count": "window(CountSlidingWindowAssigner.of(3, 2))",
    "count windows": "count_window(2)",
    "sliding count windows": "count_window(3, 1)",
    "of all time": "window(GlobalWindows.create()).trigger(CountTrigger.of(2))",
    "of all time, purged": "window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2)))",
    "of all time until the end": "window(GlobalWindows.create()).trigger(EndOfStreamTrigger())",
    "tumbling with early results": "window(TumblingEventTimeWindows.of(Time.milliseconds(6))).trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(2)))",
    "tumbling by count": "window(TumblingEventTimeWindows.of(Time.milliseconds(5))).trigger(CountTrigger.of(2))",
    "with a trigger of the program": "window(TumblingEventTimeWindows.of(Time.milliseconds(5))).trigger(Twice())",
    "sessions with a trigger of the program": "window(EventTimeSessionWindows.with_gap(Time.milliseconds(2))).trigger(Twice())",
    "with lateness": "window(TumblingEventTimeWindows.of(Time.milliseconds(2))).allowed_lateness(3)",
    "sessions with lateness": "window(EventTimeSessionWindows.with_gap(Time.milliseconds(1))).allowed_lateness(2)",
    "with late records": "window(TumblingEventTimeWindows.of(Time.milliseconds(2))).side_output_late_data(ASIDE)",
    "sliding with late records": """window(SlidingEventTimeWindows.of(Time.milliseconds(4), Time.milliseconds(2))).allowed_lateness(
        1).side_output_late_data(ASIDE)""",
    "with an evictor": "window(TumblingEventTimeWindows.of(Time.milliseconds(6))).evictor(CountEvictor.of(2))",
    "of all time with an evictor": "window(GlobalWindows.create()).trigger(CountTrigger.of(2)).evictor(CountEvictor.of(3))",
    "by time with an evictor": "window(EventTimeSessionWindows.with_gap(Time.milliseconds(3))).evictor(TimeEvictor.of(Time.milliseconds(2)))",
}
"""By name: what makes windows of a keyed stream."""


def _state(descriptor: str, get: str, use: str) -> tuple[str, str]:
    """The statements that get a state in `open`, and the statements that use it for a record."""
    return f"descriptor = {descriptor}\nLIFE\nself.state = context.{get}(descriptor)", use


STATES = {
    "a value": _state(
        "ValueStateDescriptor('state', Types.LONG())",
        "get_state",
        "self.state.update((self.state.value() or 0) + N)\nfound = self.state.value()",
    ),
    "any value": _state(
        "ValueStateDescriptor('state', Types.PICKLED_BYTE_ARRAY())",
        "get_state",
        "found = self.state.value()\nself.state.update(v)\nif N == 6:\n    self.state.clear()",
    ),
    "a list": _state(
        "ListStateDescriptor('state', Types.LONG())",
        "get_list_state",
        "self.state.add(N)\nfound = list(self.state.get())\nif N == 7:\n    self.state.update([1])",
    ),
    "a list of records": _state(
        "ListStateDescriptor('state', Types.PICKLED_BYTE_ARRAY())",
        "get_list_state",
        "self.state.add(v)\nfound = len(list(self.state.get()))\nif N % 4 == 0:\n    self.state.clear()",
    ),
    "a map": _state(
        "MapStateDescriptor('state', Types.LONG(), Types.LONG())",
        "get_map_state",
        "self.state.put(N % 4, N)\nfound = sorted(self.state.items())",
    ),
    "a map with removals": _state(
        "MapStateDescriptor('state', Types.PICKLED_BYTE_ARRAY(), Types.PICKLED_BYTE_ARRAY())",
        "get_map_state",
        """if self.state.contains(N % 2):
    found = self.state.get(N % 2), list(self.state.keys())
    self.state.remove(N % 2)
else:
    self.state.put_all([(N % 2, v), ('x', 1)])
    found = self.state.is_empty()""",
    ),
    "a sum": _state(
        "ReducingStateDescriptor('state', lambda a, b: a + b, Types.LONG())",
        "get_reducing_state",
        "self.state.add(N)\nfound = self.state.get()",
    ),
    "an aggregate": _state(
        "AggregatingStateDescriptor('state', Total(), Types.PICKLED_BYTE_ARRAY())",
        "get_aggregating_state",
        "self.state.add(v)\nfound = self.state.get()",
    ),
}

LIVES = {
    "forever": "pass",
    "for two years": "descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(730)).build())",
    "for two years after reads": """descriptor.enable_time_to_live(
    StateTtlConfig.new_builder(Time.days(730)).update_ttl_on_read_and_write().never_return_expired().build()
)""",
}

TIMERS = {
    "no timer": "pass",
    "a timer": "ctx.timer_service().register_event_time_timer(N + 3)",
    "a timer after a record": "ctx.timer_service().register_event_time_timer(ctx.timestamp() + 2)",
    "a timer after the watermark": "ctx.timer_service().register_event_time_timer(max(0, ctx.timer_service().current_watermark()) + 2)",
    "a timer after a year": """now = ctx.timer_service().current_processing_time()
ctx.timer_service().register_processing_time_timer(now + 400 * 86_400_000)""",
    "a deleted timer": """ctx.timer_service().register_event_time_timer(5)
ctx.timer_service().register_event_time_timer(N)
if N % 2:
    ctx.timer_service().delete_event_time_timer(5)""",
}

TYPES = {
    "no type": "None",
    "any type": "Types.PICKLED_BYTE_ARRAY()",
    "a tuple": "Types.TUPLE([Types.PICKLED_BYTE_ARRAY(), Types.LONG()])",
    "a row": "Types.ROW_NAMED(['a', 'b'], [Types.PICKLED_BYTE_ARRAY(), Types.LONG()])",
}
"""How an operator declares its results."""

POLICIES = {"errors fail": "'fail'", "errors are skipped": "'skip'", "errors go aside": "ASIDE"}
"""What becomes of a record for which a function fails."""

_FLAT_MAP = """
class P(FlatMapFunction):
    seen = 0

    def flat_map(self, v):
        BODY
"""

FUNCTIONS = {
    "flat map": (
        _FLAT_MAP,
        "flat_map(P(), TYPE).on_error(POLICY)",
    ),
    "flat map after a map": (
        _FLAT_MAP,
        "map(lambda v: v).flat_map(P(), TYPE).on_error(POLICY)",
    ),
    "process": (
        """
class P(ProcessFunction):
    def __init__(self):
        self.seen = 0

    def process_element(self, v, ctx):
        BODY
""",
        "map(lambda v: v).process(P(), TYPE).on_error(POLICY)",
    ),
    "keyed process": (
        """
class P(KeyedProcessFunction):
    def __init__(self):
        self.seen = 0

    def process_element(self, v, ctx):
        BODY
""",
        "process(P(), TYPE).on_error(POLICY)",
    ),
    "state": (
        """
class P(KeyedProcessFunction):
    seen = 0

    def open(self, context):
        OPEN

    def process_element(self, v, ctx):
        USE
        yield "state", found
        BODY
""",
        "process(P(), TYPE).on_error(POLICY)",
    ),
    "state and timers": (
        """
class P(KeyedProcessFunction):
    seen = 0

    def open(self, context):
        OPEN
        self.last = context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, v, ctx):
        USE
        self.last.update(found)
        TIMER
        BODY

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, self.last.value()
""",
        "process(P(), TYPE).on_error(POLICY)",
    ),
    "map with state": (
        """
class P(MapFunction):
    def open(self, context):
        OPEN

    def map(self, v):
        USE
        return found, N
""",
        "map(P(), TYPE).on_error(POLICY)",
    ),
    "filter": (
        """
class P(FilterFunction):
    def open(self, context):
        OPEN

    def filter(self, v):
        USE
        return bool(found)
""",
        "filter(P()).on_error(POLICY)",
    ),
    "two inputs": (
        """
class P(KeyedCoProcessFunction):
    seen = 0

    def open(self, context):
        OPEN

    def process_element1(self, v, ctx):
        USE
        yield found, 1
        BODY

    def process_element2(self, v, ctx):
        TIMER
        BODY

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp
""",
        "connect(stream).process(P(), TYPE).on_error(POLICY)",
    ),
    "two streams": (
        """
class P(CoFlatMapFunction):
    seen = 0

    def flat_map1(self, v):
        BODY

    def flat_map2(self, v):
        yield v, self.seen
""",
        "connect(env.from_sequence(1, 3)).flat_map(P(), TYPE).on_error(POLICY)",
    ),
    "two keyed streams": (
        """
class P(CoMapFunction):
    seen = 0

    def open(self, context):
        OPEN

    def map1(self, v):
        USE
        return found, 1

    def map2(self, v):
        return v, 2
""",
        "connect(env.from_sequence(1, 3).key_by(lambda v: v)).map(P(), TYPE).on_error(POLICY)",
    ),
    "broadcast": (
        """
class P(KeyedBroadcastProcessFunction):
    seen = 0

    def process_element(self, v, ctx):
        yield "rule", sorted(ctx.get_broadcast_state(NUMBERS).items())
        BODY

    def process_broadcast_element(self, v, ctx):
        ctx.get_broadcast_state(NUMBERS).put(v, 1)
        yield v, 0
""",
        "connect(env.from_sequence(1, 2).broadcast(NUMBERS)).process(P(), TYPE).on_error(POLICY)",
    ),
    "broadcast without a key": (
        """
class P(BroadcastProcessFunction):
    seen = 0

    def process_element(self, v, ctx):
        if ctx.get_broadcast_state(NUMBERS).contains(N):
            yield v, 1
        BODY

    def process_broadcast_element(self, v, ctx):
        ctx.get_broadcast_state(NUMBERS).put(v, 1)
""",
        "map(lambda v: v).connect(env.from_sequence(1, 2).broadcast(NUMBERS)).process(P(), TYPE).on_error(POLICY)",
    ),
    "process of windows": (
        """
class P(ProcessWindowFunction):
    seen = 0

    def process(self, key, ctx, elements):
        for v in elements:
            BODY
""",
        "WINDOW.process(P(), TYPE)",
    ),
    "process of whole windows": (
        """
class P(ProcessWindowFunction):
    def process(self, key, ctx, elements):
        yield key, [N for v in elements]
""",
        "WINDOW.process(P(), TYPE)",
    ),
    "process with the window": (
        """
class P(ProcessWindowFunction):
    def process(self, key, ctx, elements):
        yield str(ctx.window()), ctx.current_watermark(), len(list(elements))
""",
        "WINDOW.process(P(), TYPE)",
    ),
    "process with state of windows": (
        """
class P(ProcessWindowFunction):
    def open(self, context):
        self.descriptor = ValueStateDescriptor("many", Types.LONG())

    def process(self, key, ctx, elements):
        one, all = ctx.window_state().get_state(self.descriptor), ctx.global_state().get_state(self.descriptor)
        one.update((one.value() or 0) + len(list(elements)))
        all.update((all.value() or 0) + 1)
        yield one.value(), all.value()

    def clear(self, ctx):
        ctx.window_state().get_state(self.descriptor).clear()
""",
        "WINDOW.process(P(), TYPE)",
    ),
    "apply of windows": (
        """
class P(WindowFunction):
    seen = 0

    def apply(self, key, window, elements):
        for v in elements:
            BODY
""",
        "WINDOW.apply(P(), TYPE)",
    ),
    "reduce of windows": ("", "WINDOW.reduce(lambda a, b: a if number(a) < number(b) else b)"),
    "last of windows": ("", "WINDOW.reduce(lambda a, b: b)"),
    "reduce and process of windows": (
        """
class P(ProcessWindowFunction):
    seen = 0

    def process(self, key, ctx, elements):
        for v in elements:
            BODY
""",
        "WINDOW.reduce(lambda a, b: b, P())",
    ),
    "aggregate of windows": ("", "WINDOW.aggregate(Total())"),
    "lists of windows": ("", "WINDOW.aggregate(Lists())"),
    "aggregate and process of windows": (
        """
class P(ProcessWindowFunction):
    def process(self, key, ctx, elements):
        for count, total in elements:
            yield key, count, total
""",
        "WINDOW.aggregate(Total(), P())",
    ),
    "aggregate and apply of windows": (
        """
class P(WindowFunction):
    def apply(self, key, window, elements):
        yield key, list(elements)
""",
        "WINDOW.aggregate(Total(), P())",
    ),
    "sums of windows": ("", "map(lambda v: (K, N)).key_by(lambda p: p[0]).WINDOW.sum(1)"),
    "greatest of windows": ("", "map(lambda v: (K, N)).key_by(lambda p: p[0]).WINDOW.max_by(1)"),
    "reduced pairs of windows": (
        "",
        "map(lambda v: (K, N)).key_by(lambda p: p[0]).WINDOW.reduce(lambda a, b: (a[0], a[1] + b[1]))",
    ),
    "windows of windows": (
        "",
        "WINDOW.aggregate(Total()).key_by(lambda p: p[1]).window(TumblingEventTimeWindows.of(Time.milliseconds(8))).reduce(lambda a, b: (a[0] + b[0], a[1]))",
    ),
    "windows of all keys": (
        """
class P(ProcessAllWindowFunction):
    def process(self, ctx, elements):
        yield ctx.window().start, [N for v in elements]
""",
        "map(lambda v: v).window_all(TumblingEventTimeWindows.of(Time.milliseconds(4))).process(P(), TYPE)",
    ),
    "reduce": ("", "reduce(lambda a, b: b if number(b) % 2 else a)"),
    "join": (
        """
class P(JoinFunction):
    def join(self, first, second):
        return first, second
""",
        "map(lambda v: v).join(env.from_sequence(0, 3).map(lambda x: x)).where(KeyOf()).equal_to(lambda x: x).window(GlobalWindows.create()).apply(P())",
    ),
    "join of windows": (
        "",
        """map(lambda v: v).join(stream.map(lambda v: v)).where(KeyOf()).equal_to(lambda v: K).window(
        TumblingEventTimeWindows.of(Time.milliseconds(4))).apply(lambda a, b: (a, b))""",
    ),
    "co group": (
        """
class P(CoGroupFunction):
    def co_group(self, first, second):
        yield [number(v) for v in first], len(list(second))
""",
        """map(lambda v: v).co_group(stream.map(lambda v: v)).where(lambda v: K).equal_to(lambda v: K).window(
        SlidingEventTimeWindows.of(Time.milliseconds(4), Time.milliseconds(2))).apply(P())""",
    ),
    "interval join": (
        """
class P(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield number(left), number(right)
""",
        "interval_join(stream).between(Time.milliseconds(-2), Time.milliseconds(1)).process(P())",
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
    "a side output": "stream.get_side_output(TAG)",
    "records that went aside": "stream.get_side_output(ASIDE).map(lambda p: type(p).__name__)",
    "a window of it": """stream.key_by(lambda p: 1).window(TumblingEventTimeWindows.of(Time.milliseconds(5))).aggregate(
        Count())""",
    "pairs of a window": """stream.map(lambda p: (str(p), 1)).key_by(lambda p: p[0]).window(
        TumblingEventTimeWindows.of(Time.milliseconds(20))).reduce(lambda a, b: (a[0], a[1] + b[1]))""",
    "two readers": "stream.map(lambda p: (p, 1)).union(stream.filter(lambda p: p))",
    "a declared text": "stream.map(lambda p: str(p), Types.STRING()).key_by(lambda p: p, Types.STRING()).process(First())",
    "a connected stream": "stream.connect(env.from_sequence(1, 2)).map(Either())",
    "a field, errors skipped": "stream.map(lambda p: p[0]).on_error('skip')",
    "count windows of a field": "stream.key_by(lambda p: p[0]).count_window(2).reduce(lambda a, b: b)",
}
"""By name: what reads the results `p`."""

TABLES: Mapping[tuple[str, ...], Mapping[str, str | tuple[str, ...]]] = {
    ("CLASS", "CALL"): FUNCTIONS,
    ("OPEN", "USE"): STATES,
    ("LIFE",): LIVES,
    ("TIMER",): TIMERS,
    ("WINDOW",): WINDOWS,
    ("TYPE",): TYPES,
    ("POLICY",): POLICIES,
    ("BODY",): BODIES,
    ("READER",): READERS,
    ("KEYS",): KEYS,
    ("TIMES",): TIMES,
    ("SOURCE", "K", "N"): SOURCES,
    ("STRATEGY",): STRATEGIES,
}
"""By the words of a program: what they stand for. An entry may mention words of later tables."""


def combined_program(seed: int) -> tuple[str, str]:
    """The names of the entries, and the text of a module that defines `draw(env)`."""
    chosen = random.Random(seed)
    text = PROGRAM
    names = []
    for words, table in TABLES.items():
        name = chosen.choice(list(table))
        if any(re.search(rf"\b{word}", text) for word in words):
            names.append(name)
            entry = table[name]
            parts = (entry,) if isinstance(entry, str) else entry
            for word, part in zip(words, parts, strict=True):
                text = _replaced(text, word, part)
    return " - ".join(names), text


def _replaced(text: str, word: str, part: str) -> str:
    """Puts a part in place of a word; a word on a line of its own stands for indented lines."""
    text = re.sub(rf"(?m)^( *){word}$", lambda found: indent(part, found[1]), text)
    return re.sub(rf"\b{word}\b", lambda _: part, text)
