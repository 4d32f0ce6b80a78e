"""State with a time to live of an hour, of every kind of update and visibility."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Time, Types
from pyflink.datastream import FilterFunction, KeyedProcessFunction
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)


def hour():
    return (
        StateTtlConfig.new_builder(Time.hours(1))
        .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
        .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
        .build()
    )


def day():
    return (
        StateTtlConfig.new_builder(Time.days(1))
        .update_ttl_on_create_and_write()
        .return_expired_if_not_cleaned_up()
        .cleanup_incrementally(10, True)
        .cleanup_full_snapshot()
        .build()
    )


class First(FilterFunction):
    def open(self, ctx):
        descriptor = ValueStateDescriptor("seen", Types.BOOLEAN())
        descriptor.enable_time_to_live(hour())
        self.seen = ctx.get_state(descriptor)

    def filter(self, value):
        if self.seen.value():
            return False
        self.seen.update(True)
        return True


class All(KeyedProcessFunction):
    def open(self, ctx):
        found = [
            ListStateDescriptor("list", Types.INT()),
            MapStateDescriptor("map", Types.INT(), Types.STRING()),
            ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT()),
        ]
        for descriptor in found:
            descriptor.enable_time_to_live(day())
        self.list = ctx.get_list_state(found[0])
        self.map = ctx.get_map_state(found[1])
        self.sum = ctx.get_reducing_state(found[2])

    def process_element(self, value, ctx):
        self.list.add(value)
        self.list.add_all([value, -value])
        self.map.put(value, "v" * value)
        self.map.put(value % 2, "m")
        self.sum.add(value)
        yield list(self.list.get()), sorted(self.map.items()), self.sum.get()
        if value == 4:
            self.list.update([9])
            self.map.remove(0)
            self.sum.clear()
            yield list(self.list), sorted(self.map.keys()), self.sum.get(), self.map.is_empty()


def build(env, out):
    words = env.from_collection(["a", "b", "a", "", "b", "c"], Types.STRING())
    out(words.key_by(lambda w: w, Types.STRING()).filter(First()), "first")
    numbers = env.from_collection([2, 1, 4, 3, 2], Types.INT())
    out(numbers.key_by(lambda v: v % 2).process(All()), "all")
