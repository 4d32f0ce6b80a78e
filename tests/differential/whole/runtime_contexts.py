"""What a RuntimeContext tells: names, subtasks, job parameters and metrics; open and close of every function."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Types
from pyflink.datastream import (
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
)


class Tell(MapFunction):
    def open(self, runtime_context):
        self.context = runtime_context

    def map(self, value):
        context = self.context
        return (
            value,
            context.get_index_of_this_subtask(),
            context.get_number_of_parallel_subtasks(),
            context.get_attempt_number(),
            context.get_max_number_of_parallel_subtasks(),
            context.get_task_name().split(" ")[0] != "",
            context.get_job_parameter("missing", "default"),
        )


class Metrics(MapFunction):
    def open(self, runtime_context):
        group = runtime_context.get_metrics_group()
        self.counter = group.add_group("mine", "own").counter("numbers")
        self.plain = group.counter("plain")
        self.meter = group.meter("speed", 60)
        self.sizes = group.distribution("sizes")
        self.last = 0
        group.gauge("last", lambda: self.last)

    def map(self, value):
        self.counter.inc(value)
        self.plain.inc()
        self.plain.dec(2)
        self.meter.mark_event()
        self.meter.mark_event(3)
        self.sizes.update(value)
        self.last = value
        return value


class Opened(FlatMapFunction):
    steps = None

    def __init__(self):
        self.steps = ["made"]

    def open(self, runtime_context):
        self.steps.append("opened")

    def flat_map(self, value):
        self.steps.append(str(value))
        yield from self.steps

    def close(self):
        self.steps = None


class Least(ReduceFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def reduce(self, value1, value2):
        return min(value1, value2) - 1 - self.subtask


class Some(FilterFunction):
    def open(self, runtime_context):
        self.limit = runtime_context.get_number_of_parallel_subtasks()

    def filter(self, value):
        return value > self.limit


class Timers(KeyedProcessFunction):
    def open(self, runtime_context):
        self.where = runtime_context.get_index_of_this_subtask()

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(5)
        yield value, ctx.get_current_key(), self.where

    def on_timer(self, timestamp, ctx):
        yield "end", ctx.get_current_key(), self.where


class Both(CoMapFunction):
    def open(self, runtime_context):
        self.seen = []

    def map1(self, value):
        return "one", value

    def map2(self, value):
        return "two", value


class Halves(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield value, ctx.timestamp()

    def process_element2(self, value, ctx):
        yield -value, ctx.timer_service().current_watermark()


class Plain(ProcessFunction):
    def open(self, runtime_context):
        self.seen = 0

    def process_element(self, value, ctx):
        self.seen += 1
        yield value, self.seen, ctx.timestamp(), ctx.timer_service().current_watermark()


def build(env, out):
    numbers = env.from_collection([4, 1, 3], Types.INT())
    out(numbers.map(Tell()), "tell")
    out(numbers.map(Metrics()), "metrics")
    out(numbers.flat_map(Opened()), "opened")
    out(numbers.key_by(lambda v: 0).reduce(Least()), "least")
    out(numbers.filter(Some()), "some")
    out(numbers.key_by(lambda v: v % 2).process(Timers()), "timers")
    out(numbers.connect(numbers.map(str)).map(Both()), "both")
    out(numbers.connect(numbers).process(Halves()), "halves")
    out(numbers.process(Plain()), "plain")
