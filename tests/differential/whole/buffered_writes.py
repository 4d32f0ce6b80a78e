"""Records are gathered in list state and leave by threes, the rest when their time has come."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor

WRITES = [("t1", i * 1000, f"row {i}") for i in range(8)] + [("t2", 500, "x"), ("t2", 600, "y")]


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Buffer(KeyedProcessFunction):
    def __init__(self, size: int):
        self.size = size
        self.rows = None
        self.timer = None

    def open(self, runtime_context: RuntimeContext):
        self.rows = runtime_context.get_list_state(ListStateDescriptor("rows", Types.STRING()))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        self.rows.add(value[2])
        if self.timer.value() is None:
            timer = ctx.timestamp() + 30_000
            ctx.timer_service().register_event_time_timer(timer)
            self.timer.update(timer)
        if len(list(self.rows)) >= self.size:
            ctx.timer_service().delete_event_time_timer(self.timer.value())
            yield from self.flush(ctx.get_current_key(), "full")

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield from self.flush(ctx.get_current_key(), f"at {timestamp}")

    def flush(self, key, why):
        rows = [row for row in self.rows.get()]
        self.rows.update([])
        self.timer.clear()
        yield key, why, rows


def build(env, out):
    writes = env.from_collection(
        WRITES, Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()])
    ).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_millis(90_000)
        ).with_timestamp_assigner(At())
    )
    out(writes.key_by(lambda w: w[0]).process(Buffer(3)), "batches")
