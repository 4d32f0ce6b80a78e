"""Sensors: running statistics, hysteresis, missing data by timers, and alerts as side outputs of declared types."""

# mode: STREAMING
# parallelism: 1
import math
from datetime import datetime, timedelta

from pyflink.common import Duration, Instant, Row, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, KeyedProcessFunction, OutputTag, ProcessFunction
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

READING = Types.ROW_NAMED(
    ["sensor", "at", "value", "flags"],
    [Types.STRING(), Types.INSTANT(), Types.DOUBLE(), Types.PRIMITIVE_ARRAY(Types.BYTE())],
)
ALERT = OutputTag(
    "alert",
    Types.ROW_NAMED(
        ["sensor", "level", "since"], [Types.STRING(), Types.SHORT(), Types.SQL_TIMESTAMP()]
    ),
)
BROKEN = OutputTag("broken", Types.LIST(Types.FLOAT()))
START = 1_700_000_000_000
READINGS = [
    Row(
        f"s{i % 3}",
        Instant.of_epoch_milli(START + i * 7_000 % 50_000),
        math.sin(i) * 50 + 40,
        bytes([i, i * 5 % 256]),
    )
    for i in range(20)
] + [
    Row("s9", Instant.of_epoch_milli(START), float("nan"), b""),
    Row("s9", Instant.of_epoch_milli(START + 1), float("inf"), b"\xff"),
]


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value.at.to_epoch_milli()


class Welford(AggregateFunction):
    def create_accumulator(self):
        return 0, 0.0, 0.0

    def add(self, value, accumulator):
        count, mean, squares = accumulator
        count += 1
        delta = value - mean
        mean += delta / count
        return count, mean, squares + delta * (value - mean)

    def get_result(self, accumulator):
        count, mean, squares = accumulator
        return (mean, math.sqrt(squares / (count - 1))) if count > 1 else (mean, 0.0)

    def merge(self, a, b):
        raise NotImplementedError


class Watch(KeyedProcessFunction):
    HIGH, LOW = 75, 60

    def open(self, ctx):
        self.stats = ctx.get_aggregating_state(
            AggregatingStateDescriptor(
                "stats", Welford(), Types.TUPLE([Types.INT(), Types.DOUBLE(), Types.DOUBLE()])
            )
        )
        self.since = ctx.get_state(ValueStateDescriptor("since", Types.LONG()))
        self.peaks = ctx.get_reducing_state(ReducingStateDescriptor("peaks", max, Types.DOUBLE()))
        self.by_level = ctx.get_map_state(
            MapStateDescriptor("levels", Types.SHORT(), Types.LIST(Types.DOUBLE()))
        )

    def process_element(self, value, ctx):
        if math.isnan(value.value) or math.isinf(value.value):
            yield BROKEN, [value.value, *value.flags]
            return
        self.stats.add(value.value)
        self.peaks.add(value.value)
        level = int(value.value // 25)
        self.by_level.put(level, (self.by_level.get(level) or []) + [round(value.value, 1)])
        mean, deviation = self.stats.get()
        if value.value > self.HIGH and self.since.value() is None:
            self.since.update(ctx.timestamp())
            yield (
                ALERT,
                Row(
                    sensor=value.sensor,
                    level=level,
                    since=datetime(1970, 1, 1) + timedelta(milliseconds=ctx.timestamp()),
                ),
            )
        elif value.value < self.LOW and self.since.value() is not None:
            yield f"{value.sensor} was high for {ctx.timestamp() - self.since.value()}"
            self.since.clear()
        yield f"{value.sensor} {mean:.6f} {deviation:.6f} {self.peaks.get():.3f} {value.flags.hex()}"
        yield str({level: found for level, found in sorted(self.by_level.items())})


class Missing(KeyedProcessFunction):
    """Says which of the expected seconds had no reading."""

    def open(self, ctx):
        self.seen = ctx.get_list_state(ListStateDescriptor("seen", Types.LONG()))

    def process_element(self, value, ctx):
        self.seen.add((ctx.timestamp() - START) // 1000)
        ctx.timer_service().register_event_time_timer(START + 60_000)

    def on_timer(self, timestamp, ctx):
        seen = set(self.seen)
        yield (
            ctx.get_current_key(),
            [second for second in range(0, 50, 7) if second not in seen],
            timestamp - START,
        )


def build(env, out):
    readings = env.from_collection(READINGS, READING)
    timed = readings.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_minutes(10)
        ).with_timestamp_assigner(At())
    )
    watched = timed.key_by(lambda r: r.sensor, Types.STRING()).process(Watch(), Types.STRING())
    out(watched, "watched")
    out(watched.get_side_output(ALERT), "alerts")
    out(
        watched.get_side_output(ALERT).map(lambda a: (a.sensor, a.level, a.since.isoformat())),
        "alerts in chain",
    )
    out(watched.get_side_output(BROKEN), "broken")
    out(
        timed.key_by(lambda r: r["sensor"]).process(
            Missing(), Types.TUPLE([Types.STRING(), Types.LIST(Types.INT()), Types.LONG()])
        ),
        "missing",
    )
    out(timed.map(lambda r: r.at, Types.INSTANT()), "instants")
    out(
        timed.key_by(lambda r: r.flags[:1]).map(
            lambda r: r.flags, Types.PRIMITIVE_ARRAY(Types.BYTE())
        ),
        "flags",
    )
