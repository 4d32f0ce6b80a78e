"""Functions as people pass them: partials, bound methods, builtins, closures, nested functions."""

# mode: STREAMING
# parallelism: 1
import functools
import operator

from pyflink.common import Types
from pyflink.datastream import FilterFunction, FlatMapFunction, MapFunction


class Scale(MapFunction):
    def __init__(self, factor=2):
        self.factor = factor

    def open(self, runtime_context):
        self.calls = 0

    def map(self, value):
        self.calls += 1
        return value * self.factor

    def close(self):
        self.calls = None


class Odd(FilterFunction):
    def filter(self, value):
        return value & 1


class UpTo(FlatMapFunction):
    def flat_map(self, value):
        for number in range(value):
            if number == 3:
                return
            yield number


class Shifter:
    def __init__(self, by):
        self.by = by

    def shift(self, value):
        return value + self.by


def power(base, exponent):
    return base**exponent


def build(env, out):
    offset = 100

    def add_offset(value):
        return value + offset

    numbers = env.from_collection([1, 2, 3, 4, 5], Types.INT())
    shift = Shifter(7).shift
    square = functools.partial(power, exponent=2)
    out(numbers.map(lambda v: square(v)), "partial")
    out(numbers.map(lambda v: shift(v), Types.LONG()), "bound")
    out(numbers.map(add_offset).map(str), "closure")
    out(numbers.map(Scale(3), Types.FLOAT()).map(Scale(), output_type=Types.INT()), "scaled")
    out(numbers.filter(Odd()).flat_map(UpTo(), Types.INT()), "up to")
    out(
        numbers.map(lambda v: (v % 2, v))
        .key_by(operator.itemgetter(0))
        .reduce(lambda a, b: (a[0], a[1] + b[1])),
        "sums",
    )
    out(numbers.map(lambda v, *, plus=1: v + plus, Types.INT()), "default")
