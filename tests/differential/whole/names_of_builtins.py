"""Locals, globals and parameters that have the names of builtins or keywords of generated code."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Row, Types
from pyflink.datastream import FlatMapFunction, KeyedProcessFunction, MapFunction, ReduceFunction
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

len = lambda value: 99
list = 5
range_ = range
sorted = min
True_ = 0


def max(a, b):
    return f"max({a}, {b})"


def str(value):
    return "s" + repr(value)


class dict(MapFunction):
    def map(self, value):
        tuple = (value, 1)
        set = {value}
        int = 7
        return tuple, [*set], int


class Shadow(KeyedProcessFunction):
    def open(self, ctx):
        self.list = ctx.get_list_state(ListStateDescriptor("list", Types.INT()))
        self.map = ctx.get_map_state(MapStateDescriptor("map", Types.INT(), Types.INT()))
        self.value = ctx.get_state(ValueStateDescriptor("value", Types.INT()))
        self.append = []

    def process_element(self, self_, ctx):
        value = self_
        self.list.add(value)
        self.append.append(value)
        next = self.value.value() or 0
        self.value.update(next + value)
        self.map[value] = next
        iter = [key for key in self.map.keys()]
        yield len(iter), iter, next, [x for x in self.list.get()], list, self.append[-1:]


class Fold(ReduceFunction):
    def reduce(self, value, context):
        result = (value[0], max(value[1], context[1]))
        return result


def build(env, out):
    numbers = env.from_collection([3, 1, 2], Types.INT())
    out(numbers.map(lambda value: (len(value), list, sorted(value, 2))), "lambda")
    out(numbers.map(str).map(lambda s: s + "x"), "str")
    out(numbers.map(dict()), "dict")
    out(numbers.key_by(lambda key: key % 2).process(Shadow()), "shadow")
    out(numbers.map(lambda v: (0, v)).key_by(lambda row: row[0]).reduce(Fold()), "fold")
    out(numbers.map(lambda _: _ + 1).map(lambda __: __ * 2), "underscores")
    out(numbers.flat_map(lambda len: [len] * len).map(lambda str: str + 1), "parameters")
    out(numbers.map(lambda print: (lambda print: print + 1)(print) + print), "nested")
    out(numbers.filter(lambda filter: filter > 1).map(lambda map: Row(map)), "own names")
    out(numbers.map(lambda v: (lambda: v)() + [v for v in range_(v)].pop()), "scopes")
    out(numbers.map(lambda v: {list: v for list in range_(2)} | {9: list}), "comprehension")
