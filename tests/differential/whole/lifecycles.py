"""Open and close of functions, generators with cleanup, state of the object, and results of every iterable kind."""

# mode: STREAMING and BATCH
# parallelism: 1
import contextlib
import itertools
import types

from pyflink.common import Row, Types
from pyflink.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
)
from pyflink.datastream.state import ValueStateDescriptor

SEEN = OutputTag("seen", Types.STRING())
PAIRS = OutputTag("pairs", Types.TUPLE([Types.INT(), Types.STRING()]))
UNTYPED = OutputTag("untyped")


class Base(MapFunction):
    prefix = "base"

    def open(self, runtime_context: RuntimeContext):
        self.resource = contextlib.ExitStack()
        self.opened = [self.prefix]

    @staticmethod
    def twice(value):
        return value * 2

    @classmethod
    def named(cls, value):
        return f"{cls.prefix}{value}"

    @property
    def size(self):
        return len(self.opened)

    def map(self, value):
        with self.resource:
            self.opened.append(value)
        return self.named(self.twice(value)), self.size, self.extra(value)

    def extra(self, value):
        return None

    def close(self):
        self.resource.close()


class Derived(Base):
    prefix = "derived"

    def open(self, runtime_context):
        super().open(runtime_context)
        self.extra = lambda value: f"own {value}"

    def __getattr__(self, name):
        if name == "unknown":
            return 99
        raise AttributeError(name)

    def map(self, value):
        return (*super().map(value), self.unknown)


class Slots(FlatMapFunction):
    __slots__ = ("factor", "left")

    def __init__(self, factor):
        self.factor = factor
        self.left = iter(range(100))

    def flat_map(self, value):
        return itertools.islice(self.left, value * self.factor)


class Cleanup(ProcessFunction):
    def open(self, ctx):
        self.closed = 0

    def process_element(self, value, ctx):
        try:
            yield value
            yield SEEN, f"try {value}"
            if value > 2:
                raise LookupError(value)
        except LookupError as error:
            yield PAIRS, (error.args[0], "caught")
        else:
            yield PAIRS, (value, "fine")
        finally:
            self.closed += 1
            yield UNTYPED, {"closed": self.closed}


class Nothing(ProcessFunction):
    def process_element(self, value, ctx):
        if value == 2:
            return [value, (SEEN, "list")]
        if value == 3:
            return iter((value, Row(value, "r")))
        if value == 4:
            return types.MappingProxyType({value: 1})
        return ()


class Mixed(CoProcessFunction):
    def process_element1(self, value, ctx):
        return [value]

    def process_element2(self, value, ctx):
        yield from ()
        yield SEEN, value


class Tricky(KeyedProcessFunction):
    def open(self, ctx):
        self.total = ctx.get_state(ValueStateDescriptor("total", Types.INT()))

    def process_element(self, value, ctx):
        total = self.total
        total.update((total.value() or 0) + value)
        now = [total.value() for _ in range(2)]
        update = total.update
        update(now[0] + 1)
        yield now, (lambda: self.total.value())(), max(map(lambda n: n + self.total.value(), now))


class Even(FilterFunction):
    def filter(self, value):
        return [] if value % 2 else [value]


class Concat(ReduceFunction):
    def __init__(self):
        self.calls = 0

    def reduce(self, value1, value2):
        self.calls += 1
        return value1 * 10 + value2 * (self.calls > 0)


def counter():
    count = 0

    def counted(value):
        nonlocal count
        count += value
        return count

    return counted


def decorated(function):
    def wrapper(*args, **kwargs):
        return "wrapped", function(*args, **kwargs)

    return wrapper


@decorated
def square(value, power=2):
    return value**power


def build(env, out):
    numbers = env.from_collection([1, 2, 3, 4], Types.INT())
    out(numbers.map(Base()), "base")
    out(numbers.map(Derived()), "derived")
    out(numbers.flat_map(Slots(2), Types.INT()), "slots")
    cleaned = numbers.process(Cleanup(), Types.INT())
    out(cleaned, "cleaned")
    for tag in (SEEN, PAIRS, UNTYPED):
        out(cleaned.get_side_output(tag), tag.tag_id)
    nothing = numbers.process(Nothing())
    out(nothing, "nothing")
    out(nothing.get_side_output(SEEN), "nothing seen")
    mixed = numbers.connect(numbers.map(lambda v: "x" * v, Types.STRING())).process(
        Mixed(), Types.INT()
    )
    out(mixed, "mixed")
    out(mixed.get_side_output(SEEN), "mixed seen")
    out(numbers.key_by(lambda v: v % 2).process(Tricky()), "tricky")
    out(numbers.filter(Even()), "even")
    out(numbers.key_by(lambda v: v % 2).reduce(Concat()), "concat")
    out(numbers.map(counter()), "counter")
    out(numbers.map(counter()).map(counter()).filter(lambda v: v & 1), "counters")
    out(numbers.map(square), "square")
    out(numbers.map(bin).map(str.upper).map(len), "builtins")
    out(numbers.map(lambda v, *rest, **more: (v, rest, more)), "all arguments")
    out(numbers.flat_map(lambda v: [v] * v).map({1: "one", 2: "two"}.get).filter(bool), "get")
    out(numbers.map([10, 20, 30, 40, 50].__getitem__), "items")
    out(numbers.key_by(lambda v: "same").reduce(max), "max")
    out(numbers.key_by(str).reduce(lambda *pair: sum(pair)), "sum")
