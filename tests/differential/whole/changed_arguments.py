"""Functions that change their argument, a captured list, a default list, or an attribute of a class."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Row, Types
from pyflink.datastream import FilterFunction, FlatMapFunction, MapFunction, ProcessFunction

SEEN = []
TOTALS = {"count": 0}


def remember(value, seen=[]):
    seen.append(value)
    return list(seen)


def count_all(value):
    TOTALS["count"] += 1
    SEEN.append(value)
    return (value, TOTALS["count"], len(SEEN))


counter = 0


def count_globally(value):
    global counter
    counter += value
    return counter


def closure():
    total = 0
    history = []

    def add(value):
        nonlocal total
        total += value
        history.append(total)
        return total, history[:]

    return add


class Tally(MapFunction):
    total = 0
    shared = []

    def map(self, value):
        Tally.total += value
        self.shared.append(value)
        return Tally.total, self.total, list(Tally.shared)


class OwnTally(MapFunction):
    total = 10

    def map(self, value):
        self.total += value
        return self.total, OwnTally.total, type(self).total


class Grow(FlatMapFunction):
    def __init__(self):
        self.items = []

    def flat_map(self, value):
        self.items.append(value)
        for item in self.items:
            if item < 3 and len(self.items) < 6:
                self.items.append(item + 10)
            yield item, len(self.items)


class Mark(FilterFunction):
    def filter(self, value):
        value["seen"] = value.get("seen", 0) + 1
        return value["n"] % 2


class Change(ProcessFunction):
    def process_element(self, value, ctx):
        yield dict(value)
        value["n"] += 100
        yield value


def bump(row):
    row["n"] += 1
    row["name"] = row["name"].upper()
    return row


def pop_first(values):
    values.pop(0)
    return values


def build(env, out):
    numbers = env.from_collection([1, 2, 3], Types.INT())
    out(numbers.map(remember), "default")
    out(numbers.map(count_all), "globals")
    out(numbers.map(count_globally), "global")
    out(numbers.map(closure()), "closure")
    out(numbers.map(Tally()), "tally")
    out(numbers.map(OwnTally()), "own tally")
    out(numbers.flat_map(Grow()), "grow")
    dicts = numbers.map(lambda v: {"n": v})
    out(dicts.filter(Mark()).map(lambda d: sorted(d.items())), "mark")
    out(dicts.process(Change()).map(lambda d: d["n"]), "change")
    rows = numbers.map(lambda v: Row(name="a" * v, n=v))
    out(rows.map(bump).map(bump).map(lambda r: (r.n, r.name)), "rows")
    lists = numbers.map(lambda v: [v, v + 1, v + 2])
    out(lists.map(pop_first).map(lambda values: values.append(0) or values), "lists")
    out(lists.map(lambda values: values.sort(reverse=True)).map(lambda v: repr(v)), "None")
