"""Rate limits: token buckets in event time, sliding logs, and deduplication by hash with a time to live."""

# mode: STREAMING and BATCH
# parallelism: 1
import bisect
import hashlib
import itertools

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
)
from pyflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

CALLS = [(f"client-{i % 2}", f"/path/{i % 5}", i * 130 % 2000) for i in range(24)]
CALL = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()])
LIMITED = OutputTag("limited", Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()]))


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


class Bucket(KeyedProcessFunction):
    def __init__(self, size: float, per_second: float):
        self.size, self.per_second = size, per_second

    def open(self, ctx):
        self.level = ctx.get_state(
            ValueStateDescriptor("level", Types.TUPLE([Types.DOUBLE(), Types.LONG()]))
        )

    def process_element(self, value, ctx):
        level, last = self.level.value() or (self.size, value[2])
        level = min(self.size, level + max(0, value[2] - last) / 1000 * self.per_second)
        if allowed := level >= 1:
            level -= 1
        self.level.update((level, max(last, value[2])))
        if allowed:
            yield (*value, round(level, 3))
        else:
            yield LIMITED, value


class SlidingLog(FlatMapFunction):
    def open(self, ctx):
        self.log = ctx.get_list_state(ListStateDescriptor("log", Types.LONG()))

    def flat_map(self, value):
        log = list(self.log.get())
        bisect.insort(log, value[2])
        del log[: bisect.bisect_left(log, log[-1] - 500)]
        self.log.update(log)
        if len(log) > 2:
            yield from zip(itertools.repeat(value[0]), log, strict=False)


class Once(FilterFunction):
    def open(self, ctx):
        config = (
            StateTtlConfig.new_builder(Time.days(2))
            .set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)
            .never_return_expired()
            .cleanup_in_rocksdb_compact_filter(1000)
            .build()
        )
        descriptor = MapStateDescriptor("hashes", Types.STRING(), Types.BOOLEAN())
        descriptor.enable_time_to_live(config)
        self.hashes = ctx.get_map_state(descriptor)

    def filter(self, value):
        digest = hashlib.md5(repr(value[1:2]).encode()).hexdigest()
        if digest in self.hashes:
            return False
        self.hashes[digest] = True
        return True


def build(env, out):
    calls = env.from_collection(CALLS, CALL).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(At())
    )
    keyed = calls.key_by(lambda call: call[0], Types.STRING())
    buckets = keyed.process(Bucket(3, per_second=2.5))
    out(buckets, "allowed")
    out(buckets.get_side_output(LIMITED), "limited")
    out(
        buckets.get_side_output(LIMITED)
        .key_by(lambda c: c[1])
        .reduce(lambda a, b: (a[0], b[1], a[2] + b[2])),
        "limited paths",
    )
    out(keyed.flat_map(SlidingLog(), Types.TUPLE([Types.STRING(), Types.LONG()])), "log")
    out(keyed.filter(Once()), "once")
    out(keyed.filter(Once()).key_by(lambda c: c[1][-1]).min_by(2), "first of path")
