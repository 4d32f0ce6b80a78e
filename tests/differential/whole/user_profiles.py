"""Profiles are put together from several streams by user, and written when all parts are there."""

# mode: BATCH
# parallelism: 2
from pyflink.common import Row, Types
from pyflink.datastream import CoFlatMapFunction, CoMapFunction, KeyedCoProcessFunction
from pyflink.datastream.state import ValueStateDescriptor

NAMES = [(1, "ann"), (2, "bob"), (3, "eve")]
CITIES = [(2, "Rome"), (1, "Oslo"), (4, "Lima")]
PAIR = Types.TUPLE([Types.INT(), Types.STRING()])
PROFILE = Types.ROW_NAMED(["id", "name", "city"], [Types.INT(), Types.STRING(), Types.STRING()])


class Join(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.name = runtime_context.get_state(ValueStateDescriptor("name", Types.STRING()))
        self.city = runtime_context.get_state(ValueStateDescriptor("city", Types.STRING()))

    def process_element1(self, value, ctx):
        self.name.update(value[1])
        return self.both(ctx)

    def process_element2(self, value, ctx):
        self.city.update(value[1])
        return self.both(ctx)

    def both(self, ctx):
        if self.name.value() and self.city.value():
            return [Row(ctx.get_current_key(), self.name.value(), self.city.value())]
        return []


class Label(CoMapFunction):
    def map1(self, value):
        return f"name {value[1]}"

    def map2(self, value):
        return f"city {value[1]}"


class Letters(CoFlatMapFunction):
    def flat_map1(self, value):
        yield from value[1]

    def flat_map2(self, value):
        if value[0] > 1:
            yield value[1][0]


def build(env, out):
    names = env.from_collection(NAMES, PAIR)
    cities = env.from_collection(CITIES, PAIR)
    both = names.connect(cities)
    out(both.map(Label(), Types.STRING()), "labels")
    out(both.flat_map(Letters()), "letters")
    joined = names.key_by(lambda n: n[0]).connect(cities.key_by(lambda c: c[0])).process(Join())
    out(joined, "untyped")
    out(both.key_by(lambda n: n[0], lambda c: c[0], Types.INT()).process(Join(), PROFILE), "typed")
