"""flat_map and process by generators, iterators, yield from, early return, nested generators and None."""

# mode: STREAMING
# parallelism: 1
import itertools

from pyflink.common import Row, Types
from pyflink.datastream import FlatMapFunction, OutputTag, ProcessFunction

EVEN = OutputTag("even", Types.INT())
TEXT = OutputTag("text", Types.STRING())


def upwards(value):
    yield from range(value)


def finally_(value):
    try:
        yield value
        if value == 2:
            return
        yield value + 0.5
    finally:
        yield "done"


def delegating(value):
    result = yield from returns(value)
    yield "result", result


def returns(value):
    yield value
    return value * 10


def tree(value):
    if value:
        yield from tree(value - 1)
        yield value
        yield from tree(value - 1)


def broken(value):
    for n in itertools.count():
        if n > value:
            break
        try:
            yield 6 // (n - 1)
        except GeneratorExit:
            raise
        except ZeroDivisionError:
            yield "zero"


class Pairs:
    def __init__(self, value):
        self.value = value

    def __iter__(self):
        return iter([(self.value, 1), (self.value, 2)])


class OwnIterator:
    def __init__(self, value):
        self.left = value

    def __iter__(self):
        return self

    def __next__(self):
        if self.left <= 0:
            raise StopIteration
        self.left -= 1
        return self.left


class Windowed(FlatMapFunction):
    """Keeps a generator between records."""

    def open(self, runtime_context):
        self.pairs = self.pair()
        next(self.pairs)

    def pair(self):
        found = None
        while True:
            first = yield found
            second = yield None
            found = (first, second)

    def flat_map(self, value):
        found = self.pairs.send(value)
        if found:
            yield found


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        if value % 2 == 0:
            yield EVEN, value
        else:
            yield from ((TEXT, f"odd {n}") for n in range(value))
        yield value
        yield from self.more(value)

    def more(self, value):
        yield EVEN, -value


class Returns(ProcessFunction):
    def process_element(self, value, ctx):
        return [value, value] if value > 1 else []


def build(env, out):
    numbers = env.from_collection([1, 2, 3], Types.INT())
    out(numbers.flat_map(upwards, Types.INT()), "upwards")
    out(numbers.flat_map(finally_), "finally")
    out(numbers.flat_map(delegating), "delegating")
    out(numbers.flat_map(tree), "tree")
    out(numbers.flat_map(broken), "broken")
    out(numbers.flat_map(Pairs), "pairs")
    out(numbers.flat_map(lambda v: OwnIterator(v)), "own iterator")
    out(numbers.flat_map(lambda v: {v: 1, -v: 2}), "keys of a dictionary")
    out(numbers.flat_map(lambda v: "ab" * v), "text")
    out(numbers.flat_map(lambda v: zip(range(v), "xyz")), "zip")
    out(
        numbers.flat_map(
            lambda v: (Row(n, v) for n in range(v)), Types.ROW([Types.INT(), Types.INT()])
        ),
        "rows",
    )
    out(
        numbers.flat_map(lambda v: map(lambda n: n * v, filter(None, range(v + 1)))),
        "map and filter",
    )
    out(
        numbers.flat_map(lambda v: itertools.chain.from_iterable(itertools.repeat([v, [v]], v))),
        "chain",
    )
    out(numbers.flat_map(lambda v: [] if v == 2 else ()), "nothing")
    out(
        numbers.flat_map(lambda v: [[]] * v).map(lambda found: found.append(1) or len(found)),
        "one list",
    )
    out(numbers.flat_map(lambda v: [[v]] * 2).map(lambda found: found + found), "same list")
    out(numbers.flat_map(Windowed()), "windowed")
    split = numbers.process(Split())
    out(split, "split")
    out(split.get_side_output(EVEN), "even")
    out(split.get_side_output(TEXT), "text tag")
    out(numbers.process(Returns()), "returns")
