"""Payments are split by what they need, handled apart, and merged again."""

# mode: STREAMING
# parallelism: 2
from pyflink.common import Types
from pyflink.datastream import OutputTag, ProcessFunction

PAYMENTS = [
    ("p1", "card", 10.5),
    ("p2", "cash", 3.25),
    ("p3", "wire", 9000.0),
    ("p4", "card", -1.0),
]


def payment():
    return Types.TUPLE([Types.STRING(), Types.STRING(), Types.DOUBLE()])


CARD = OutputTag("card", payment())
WIRE = OutputTag("wire", payment())
REFUSED = OutputTag("refused", Types.STRING())


class Route(ProcessFunction):
    def process_element(self, value, ctx):
        name, kind, amount = value
        if amount < 0:
            yield REFUSED, f"{name}: {amount}"
        elif kind == "card":
            yield CARD, value
        elif kind == "wire":
            yield WIRE, (name, kind, round(amount))
            yield value
        else:
            yield value


def build(env, out):
    routed = env.from_collection(PAYMENTS, payment()).process(Route(), output_type=payment())
    cards = routed.get_side_output(CARD).map(lambda p: (p[0], p[1], p[2] * 0.98), payment())
    wires = routed.get_side_output(WIRE)
    merged = routed.union(cards, wires)
    out(merged.map(lambda p: "{}/{}/{:.2f}".format(*p), Types.STRING()), "merged")
    out(merged.key_by(lambda p: p[1]).sum(2), "by kind")
    out(routed.get_side_output(REFUSED), "refused")
