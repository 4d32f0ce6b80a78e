"""A limit order book: price-time priority, partial fills, cancels, and a tape of trades per symbol."""

# mode: STREAMING and BATCH
# parallelism: 1
import heapq
from decimal import Decimal
from enum import Enum

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, OutputTag, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor


class Side(Enum):
    BUY = "B"
    SELL = "S"


class Field:
    RANK, NUMBER, QUANTITY, PRICE = range(4)


ORDERS = [
    (1, "XY", "B", "10.00", 5),
    (2, "XY", "S", "10.50", 3),
    (3, "XY", "S", "9.90", 2),
    (4, "AB", "B", "1.25", 10),
    (5, "XY", "B", "10.50", 4),
    (6, "AB", "S", "1.20", 4),
    (7, "XY", "C", "1", 0),
    (8, "XY", "S", "10.00", 1),
    (9, "AB", "S", "1.25", 9),
    (10, "AB", "C", "99", 0),
    (11, "XY", "B", "10.00", 7),
    (12, "XY", "S", "10.00", 20),
]
TRADE = Types.ROW_NAMED(
    ["symbol", "buyer", "seller", "price", "quantity"],
    [Types.STRING(), Types.INT(), Types.INT(), Types.BIG_DEC(), Types.INT()],
)
REJECTS = OutputTag("rejects", Types.TUPLE([Types.INT(), Types.STRING()]))
QUOTES = OutputTag("quotes")


class Match(KeyedProcessFunction):
    def __init__(self, tick=Decimal("0.01")):
        self.tick = tick
        self.books = None

    def open(self, runtime_context: RuntimeContext):
        self.books = {
            side: runtime_context.get_state(
                ValueStateDescriptor(side.name, Types.PICKLED_BYTE_ARRAY())
            )
            for side in Side
        }
        self.volume = runtime_context.get_map_state(
            MapStateDescriptor(
                "volume", Types.STRING(), Types.TUPLE([Types.INT(), Types.BIG_DEC()])
            )
        )

    def book(self, side):
        return self.books[side].value() or []

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        number, symbol, kind, price, quantity = value
        if kind == "C":
            yield from self.cancel(number, int(price))
            return
        side, price = Side(kind), Decimal(price)
        if price % self.tick:
            yield REJECTS, (number, "tick")
            return
        other = Side.SELL if side is Side.BUY else Side.BUY
        against = self.book(other)
        while quantity and against:
            best = against[0]
            if (price < best[Field.PRICE]) if side is Side.BUY else (price > best[Field.PRICE]):
                break
            filled = min(quantity, best[Field.QUANTITY])
            quantity -= filled
            best[Field.QUANTITY] -= filled
            if not best[Field.QUANTITY]:
                heapq.heappop(against)
            buyer, seller = (
                (number, best[Field.NUMBER]) if side is Side.BUY else (best[Field.NUMBER], number)
            )
            yield Row(
                symbol=symbol, buyer=buyer, seller=seller, price=best[Field.PRICE], quantity=filled
            )
            count, total = self.volume.get(symbol) or (0, Decimal(0))
            self.volume.put(symbol, (count + filled, total + filled * best[Field.PRICE]))
        self.books[other].update(against)
        if quantity:
            own = self.book(side)
            rank = (-price if side is Side.BUY else price, number)
            heapq.heappush(own, [rank, number, quantity, price])
            self.books[side].update(own)
        yield (
            QUOTES,
            {s.name: [(r[1], str(r[3]), r[2]) for r in sorted(self.book(s))] for s in Side},
        )
        if self.volume.contains(symbol):
            yield (
                QUOTES,
                (
                    "vwap",
                    symbol,
                    str((lambda c, t: t / c)(*self.volume.get(symbol)).quantize(self.tick)),
                ),
            )

    def cancel(self, number, target):
        for side, state in self.books.items():
            kept = [resting for resting in state.value() or () if resting[1] != target]
            if len(kept) != len(state.value() or ()):
                heapq.heapify(kept)
                state.update(kept)
                return
        yield REJECTS, (number, f"unknown {target}")


def build(env, out):
    orders = env.from_collection(
        ORDERS,
        Types.TUPLE([Types.INT(), Types.STRING(), Types.STRING(), Types.STRING(), Types.INT()]),
    )
    trades = orders.key_by(lambda order: order[1], Types.STRING()).process(Match(), TRADE)
    out(trades, "trades")
    out(trades.get_side_output(REJECTS), "rejects")
    out(trades.get_side_output(QUOTES), "quotes")
    out(
        trades.key_by(lambda t: (t.buyer, t["symbol"])).reduce(
            lambda a, b: Row(a.symbol, a.buyer, 0, max(a.price, b.price), a.quantity + b.quantity)
        ),
        "by buyer",
    )
    out(
        trades.map(
            lambda t: (t.symbol, t.quantity * t.price),
            Types.TUPLE([Types.STRING(), Types.BIG_DEC()]),
        )
        .key_by(lambda v: v[0])
        .sum(1),
        "turnover",
    )
