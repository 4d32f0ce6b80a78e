"""Key selectors that count their calls, change the record, or choose at random: each is called once for a record."""

# mode: STREAMING and BATCH
# parallelism: 1
import random

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, KeySelector
from pyflink.datastream.state import ValueStateDescriptor


class InTurns(KeySelector):
    def __init__(self):
        self.calls = -1

    def get_key(self, value):
        self.calls += 1
        return self.calls % 3


class Marking(KeySelector):
    def get_key(self, value):
        value["marks"] = value.get("marks", 0) + 1
        return value["k"]


class CountOfKey(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), value, count


def build(env, out):
    numbers = env.from_collection(list(range(12)))
    out(numbers.key_by(InTurns()).process(CountOfKey()), "turns")
    out(numbers.key_by(InTurns()).count_window(2).reduce(lambda a, b: a * 100 + b), "windows")
    out(numbers.map(lambda x: (x, 1)).key_by(InTurns()).sum(1).map(lambda pair: pair[1]), "sums")
    records = env.from_collection([{"k": x % 2} for x in range(6)])
    out(
        records.key_by(Marking()).process(CountOfKey()).map(lambda found: found[1]["marks"]),
        "marks",
    )
    salted = numbers.key_by(lambda x: random.randint(0, 3)).process(CountOfKey())
    counts = salted.map(lambda found: (found[0], found[2]))  # no count of a key comes twice
    again = (
        counts.key_by(lambda pair: pair).process(CountOfKey()).filter(lambda found: found[2] > 1)
    )
    out(again, "twice")
