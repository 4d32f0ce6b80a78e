"""Bools and ints, -0.0, NaN, infinities, integers beyond 64 bits, complex numbers, and types that change them."""

# mode: STREAMING
# parallelism: 1
import math
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, MapFunction
from pyflink.datastream.state import (
    ListStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

SPECIAL = [0.0, -0.0, float("inf"), float("-inf"), 1e308, 5e-324, 0.1 + 0.2, -1.5]


class Text(str):
    def __add__(self, other):
        return Text(f"<{str(self)}+{other}>")


class Amount(int):
    def __repr__(self):
        return f"Amount({int(self)})"

    def __add__(self, other):
        return Amount(int(self) + int(other))


class Latest(KeyedProcessFunction):
    def open(self, ctx):
        self.double = ctx.get_state(ValueStateDescriptor("double", Types.DOUBLE()))
        self.float = ctx.get_state(ValueStateDescriptor("float", Types.FLOAT()))
        self.big = ctx.get_list_state(ListStateDescriptor("big", Types.BIG_INT()))
        self.sum = ctx.get_reducing_state(
            ReducingStateDescriptor("sum", lambda a, b: a + b, Types.DOUBLE())
        )

    def process_element(self, value, ctx):
        before = self.double.value()
        self.double.update(value)
        self.float.update(float(int(value)) if math.isfinite(value) and abs(value) < 100 else 0.5)
        self.sum.add(value)
        yield repr((before, self.double.value(), self.float.value(), self.sum.get()))


def build(env, out):
    numbers = env.from_collection([1, 2, 3, 0, -4], Types.INT())
    out(
        numbers.map(lambda v: v > 1).map(lambda b: (b, b + 1, b * 2.5, not b, b is True, -b)),
        "bools",
    )
    out(
        numbers.map(lambda v: v > 1, Types.BOOLEAN())
        .key_by(lambda b: b)
        .reduce(lambda a, b: a and b),
        "bool keys",
    )
    out(numbers.map(lambda v: 2 ** (70 + v)).map(lambda v: (v, v >> 60, v % 7)), "large")
    out(numbers.map(lambda v: (-7 // (v or 1), -7 % (v or 1), divmod(7, -(v or 1)))), "division")
    out(
        numbers.map(lambda v: (round(v + 0.5), round(-v / 3, 2), int(-v / 2), v // 2 * 1.0)),
        "rounding",
    )
    out(
        numbers.map(lambda v: float("nan") if v == 1 else v).map(
            lambda v: (v != v, v == 1, max(v, 0), min(0, v))
        ),
        "nan",
    )
    floats = env.from_collection(SPECIAL, Types.DOUBLE())
    out(floats, "doubles")
    out(floats.map(lambda v: -v), "negated")
    out(floats.map(lambda v: (math.copysign(1, v), v == 0, str(v))), "signs")
    out(floats.map(lambda v: v, Types.FLOAT()), "floats")
    out(floats.key_by(lambda v: 0).process(Latest(), Types.STRING()), "states")
    out(floats.key_by(lambda v: 1).sum(), "sum")
    out(floats.key_by(lambda v: math.copysign(1, v) > 0).min(), "min")
    out(numbers.map(lambda v: complex(v, -0.0)).map(lambda c: c * 1j), "complex")
    out(
        numbers.map(lambda v: Fraction(v, 7)).map(lambda f: (f.numerator, f.limit_denominator(3))),
        "fractions",
    )
    out(
        numbers.map(lambda v: Decimal(v) / 7, Types.BIG_DEC()).map(
            lambda d: d.quantize(Decimal("0.001"), ROUND_DOWN)
        ),
        "decimals",
    )
    out(numbers.map(lambda v: Decimal("1E+3") * v, Types.BIG_DEC()), "exponents")
    out(
        numbers.map(lambda v: Text(f"t{v}"), Types.STRING()).map(lambda t: t + "x"),
        "chained str subclass",
    )
    out(
        numbers.map(lambda v: Amount(v), Types.LONG())
        .key_by(lambda a: 0)
        .reduce(lambda a, b: a + b),
        "typed int subclass",
    )
    out(numbers.map(lambda v: True, Types.INT()).map(lambda v: repr(v)), "True as INT in chain")
    out(numbers.map(lambda v: True, Types.INT()).rebalance().map(lambda v: repr(v)), "True as INT")
    out(
        numbers.map(lambda v: v / 2, Types.LONG()).rebalance().map(lambda v: repr(v)),
        "halves as LONG",
    )
    out(
        numbers.map(lambda v: 3 + v, Types.DOUBLE()).rebalance().map(lambda v: repr(v)),
        "ints as DOUBLE",
    )
    out(
        numbers.map(lambda v: 2**62 * (v % 2), Types.LONG())
        .map(lambda v: v + v)
        .map(lambda v: repr(v)),
        "overflow in chain",
    )
