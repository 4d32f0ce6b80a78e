"""A sequence of numbers by their remainders, counted in windows of counts."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.functions import ProcessWindowFunction, WindowFunction


class Text(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, list(elements)


class Sum(WindowFunction):
    def apply(self, key, window, inputs):
        yield key, sum(inputs)


def word(number):
    return "Fizz" * (number % 3 == 0) + "Buzz" * (number % 5 == 0) or "other"


def build(env, out):
    numbers = env.from_source(
        NumberSequenceSource(1, 31), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    out(numbers.key_by(word).count_window(3).process(Text()), "threes")
    out(
        numbers.key_by(word, key_type=Types.STRING())
        .count_window(4, 2)
        .apply(Sum(), Types.TUPLE([Types.STRING(), Types.LONG()])),
        "sliding",
    )
    out(numbers.map(word, Types.STRING()).key_by(lambda w: w).map(len), "lengths")
