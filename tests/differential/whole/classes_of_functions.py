"""Functions with properties, slots, super(), class methods, static methods, mixins and __call__."""

# mode: STREAMING
# parallelism: 1
from abc import ABC, abstractmethod
from functools import partial, partialmethod, reduce, wraps

from pyflink.common import Types
from pyflink.datastream import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ReduceFunction,
)
from pyflink.datastream.state import ValueStateDescriptor


class Base(MapFunction, ABC):
    def __init__(self, factor):
        self.factor = factor

    @property
    def doubled(self):
        return self.factor * 2

    @doubled.setter
    def doubled(self, value):
        self.factor = value / 2

    @staticmethod
    def square(value):
        return value * value

    @classmethod
    def named(cls, value):
        return f"{cls.__name__}:{value}"

    @abstractmethod
    def step(self, value): ...

    def map(self, value):
        return self.named(self.step(self.square(value)) + self.doubled)


class Add(Base):
    def step(self, value):
        return value + self.factor


class Slow(Add):
    def __init__(self, factor, extra):
        super().__init__(factor)
        self.extra = extra

    def step(self, value):
        self.doubled = self.doubled + 1
        return super().step(value) * self.extra


class Slotted(MapFunction):
    __slots__ = ("low", "high")

    def __init__(self, low, high):
        self.low, self.high = low, high

    def map(self, value):
        return max(self.low, min(self.high, value))


class Loud:
    def shout(self, text):
        return text.upper() + "!"


class Shout(Loud, MapFunction):
    again = partialmethod(Loud.shout)

    def map(self, value):
        return self.again(self.shout(value))


class Lazy(MapFunction):
    @property
    def table(self):
        return {n: n**3 for n in range(10)}

    def map(self, value):
        return self.table.get(value, -1)

    def __getattr__(self, name):
        if name == "missing":
            return 42
        raise AttributeError(name)


class Mixed(MapFunction):
    def map(self, value):
        return self.missing + value

    def __getattr__(self, name):
        if name == "missing":
            return 42
        raise AttributeError(name)


class Callable_:
    def __init__(self, by):
        self.by = by

    def __call__(self, value):
        return value - self.by


def twice(function):
    @wraps(function)
    def inner(*args, **kwargs):
        return function(function(*args, **kwargs))

    return inner


def plus(n):
    def decorate(function):
        return lambda value: function(value) + n

    return decorate


@twice
def halve(value):
    return value // 2


@plus(7)
@twice
def triple(value):
    return value * 3


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


class ByRemainder(KeySelector):
    def __init__(self, by):
        self.by = by

    def get_key(self, value):
        return value % self.by


class Largest(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2)


class Every(KeyedProcessFunction):
    """Calls a method of its parent's parent."""

    limit = 2

    def open(self, runtime_context):
        super().open(runtime_context)
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count % self.limit == 0:
            yield from self.found(value, count, ctx.get_current_key())

    def found(self, value, count, key):
        yield (key, value, count)


class EveryThird(Every):
    limit = 3

    def found(self, value, count, key):
        yield "before"
        yield from super().found(value, count, key)
        yield "after"


class Words(FlatMapFunction):
    def flat_map(self, value):
        return filter(None, map(str.strip, value.split(",")))


def build(env, out):
    numbers = env.from_collection(list(range(7)), Types.INT())
    out(numbers.map(Add(3)), "add")
    out(numbers.map(Slow(1, 2)), "slow")
    out(numbers.map(Slotted(2, 4)), "slots")
    out(env.from_collection(["a", "é"]).map(Shout()), "shout")
    out(numbers.map(Lazy()), "lazy")
    out(numbers.map(Mixed()), "getattr")
    call = Callable_(5)
    out(numbers.map(lambda v: call(v)), "callable")
    out(numbers.map(halve), "halve")
    out(numbers.map(triple), "triple")
    out(numbers.map(lambda v: fibonacci(v * 5)), "fibonacci")
    out(numbers.map(factorial), "factorial")
    out(numbers.filter(is_even).map(lambda v, odd=is_odd: odd(v + 1)), "even")
    out(numbers.key_by(ByRemainder(3)).reduce(Largest()), "largest")
    out(numbers.key_by(ByRemainder(2), Types.INT()).process(Every()), "every")
    out(numbers.key_by(ByRemainder(2)).process(EveryThird()), "third")
    out(env.from_collection(["a, b,, c", ""]).flat_map(Words()), "words")
    out(numbers.map(lambda v: reduce(lambda a, b: a * 10 + b, range(v), 0)), "digits")
    out(numbers.map(lambda v: partial(pow, 2)(v)), "powers")
