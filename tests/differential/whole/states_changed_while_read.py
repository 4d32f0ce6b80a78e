"""Lists and maps of state that are changed while they are iterated, and views of them that outlive a change."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Types
from pyflink.datastream import AggregateFunction, KeyedProcessFunction
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1] if accumulator[1] else None

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class Lists(KeyedProcessFunction):
    def open(self, ctx):
        self.items = ctx.get_list_state(ListStateDescriptor("items", Types.INT()))

    def process_element(self, value, ctx):
        self.items.add(value)
        yield "first", list(self.items.get())
        self.items.add(value * 10)
        kept = [item for item in self.items.get() if item != 2]
        self.items.update(kept)
        yield "kept", list(self.items.get())
        self.items.add_all([])
        self.items.add_all(item + 1 for item in kept[:1])
        yield "added", list(self.items.get())
        if value == 3:
            self.items.update([])
            yield "emptied", list(self.items.get())
            self.items.clear()
            yield "cleared", list(self.items.get())


class Maps(KeyedProcessFunction):
    def open(self, ctx):
        self.counts = ctx.get_map_state(MapStateDescriptor("counts", Types.STRING(), Types.INT()))

    def process_element(self, value, ctx):
        for letter in "abc"[:value]:
            self.counts.put(letter, (self.counts.get(letter) or 0) + value)
        for key in list(self.counts.keys()):
            if self.counts.get(key) > 4:
                self.counts.remove(key)
        for key, count in list(self.counts.items()):
            self.counts.put(key, count + 1)
        yield sorted(self.counts.items()), sorted(self.counts.values()), self.counts.is_empty()
        if value == 2:
            self.counts.put("z", 26)
            self.counts.clear()
            yield (
                self.counts.is_empty(),
                list(self.counts.keys()),
                self.counts.get("z"),
                self.counts.contains("z"),
            )


class Mutable(KeyedProcessFunction):
    """Values of state are changed in place, with and without a write."""

    def open(self, ctx):
        self.written = ctx.get_state(ValueStateDescriptor("written", Types.PICKLED_BYTE_ARRAY()))
        self.lists = ctx.get_map_state(
            MapStateDescriptor("lists", Types.STRING(), Types.LIST(Types.INT()))
        )

    def process_element(self, value, ctx):
        items = self.written.value()
        if items is None:
            items = []
        items.append(value)
        self.written.update(items)
        named = self.lists.get("all") or []
        named.append(value)
        self.lists.put("all", named)
        yield list(self.written.value()), list(self.lists.get("all"))


class Folded(KeyedProcessFunction):
    def open(self, ctx):
        self.product = ctx.get_reducing_state(
            ReducingStateDescriptor("product", lambda a, b: a * b, Types.LONG())
        )
        self.average = ctx.get_aggregating_state(
            AggregatingStateDescriptor(
                "average", Average(), Types.TUPLE([Types.LONG(), Types.INT()])
            )
        )
        self.text = ctx.get_reducing_state(
            ReducingStateDescriptor("text", lambda a, b: b + a, Types.STRING())
        )

    def process_element(self, value, ctx):
        yield self.product.get(), self.average.get(), self.text.get()
        self.product.add(value)
        self.product.add(2)
        self.average.add(value)
        self.text.add(str(value))
        yield self.product.get(), self.average.get(), self.text.get()
        if value == 3:
            self.product.clear()
            self.average.clear()
            yield self.product.get(), self.average.get()


def build(env, out):
    numbers = env.from_collection([1, 2, 3, 4], Types.INT())
    for remainder in (1, 2):
        keyed = numbers.key_by(lambda v: v % remainder)
        out(keyed.process(Lists()), f"lists {remainder}")
        out(keyed.process(Maps()), f"maps {remainder}")
        out(keyed.process(Mutable()), f"mutable {remainder}")
        out(keyed.process(Folded()), f"folded {remainder}")
