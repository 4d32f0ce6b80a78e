"""Changes of orders keep a book: upserts and deletes as Rows with kinds, joined with prices through two inputs."""

# mode: STREAMING
# parallelism: 1
from decimal import Decimal

from pyflink.common import Row, RowKind, Types
from pyflink.datastream import KeyedCoProcessFunction, KeyedProcessFunction, OutputTag
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor


def order():
    return Types.ROW_NAMED(
        ["id", "item", "quantity", "price"],
        [Types.INT(), Types.STRING(), Types.INT(), Types.BIG_DEC()],
    )


REJECTED = OutputTag("rejected", Types.STRING())
KINDS = {
    "+I": RowKind.INSERT,
    "-U": RowKind.UPDATE_BEFORE,
    "+U": RowKind.UPDATE_AFTER,
    "-D": RowKind.DELETE,
}


def change(kind, *values):
    row = Row(*values)
    row.set_row_kind(KINDS[kind])
    return row


CHANGES = [
    change("+I", 1, "apple", 5, Decimal("0.50")),
    change("+I", 2, "pear", 2, Decimal("0.75")),
    change("-U", 1, "apple", 5, Decimal("0.50")),
    change("+U", 1, "apple", 7, Decimal("0.45")),
    change("-D", 2, "pear", 2, Decimal("0.75")),
    change("-D", 3, "plum", 1, Decimal("1")),
    change("+I", 4, "apple", 1, Decimal("0.4")),
]


class Book(KeyedProcessFunction):
    def open(self, ctx):
        self.orders = ctx.get_map_state(MapStateDescriptor("orders", Types.INT(), order()))
        self.changes = ctx.get_list_state(ListStateDescriptor("changes", Types.STRING()))

    def process_element(self, value, ctx):
        kind = value.get_row_kind()
        self.changes.add(str(kind))
        if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            self.orders.put(value.id, value)
        elif not self.orders.contains(value.id):
            yield REJECTED, f"{kind} of {value}"
            return
        elif kind == RowKind.DELETE:
            self.orders.remove(value.id)
        total = sum((order.quantity * order.price for order in self.orders.values()), Decimal(0))
        row = Row(item=ctx.get_current_key(), total=total, changes=list(self.changes))
        row.set_row_kind(RowKind.UPDATE_AFTER if len(list(self.changes)) > 1 else RowKind.INSERT)
        yield row


class Priced(KeyedCoProcessFunction):
    def open(self, ctx):
        self.price = ctx.get_state(ValueStateDescriptor("price", Types.BIG_DEC()))
        self.waiting = ctx.get_list_state(ListStateDescriptor("waiting", order()))

    def process_element1(self, value, ctx):
        self.waiting.add(value)
        ctx.timer_service().register_event_time_timer(1)

    def process_element2(self, value, ctx):
        self.price.update(value[1])
        ctx.timer_service().register_event_time_timer(1)

    def on_timer(self, timestamp, ctx):
        price = self.price.value()
        for order in sorted(self.waiting, key=lambda row: row.id):
            gain = None if price is None else (price - order.price) * order.quantity
            yield order.id, order.item, gain


BOOKED = Types.ROW_NAMED(
    ["item", "total", "changes"], [Types.STRING(), Types.BIG_DEC(), Types.LIST(Types.STRING())]
)


def build(env, out):
    orders = env.from_collection(CHANGES, order())
    book = orders.key_by(lambda row: row.item, Types.STRING()).process(Book(), BOOKED)
    out(book, "book")
    out(book.map(lambda row: f"{row.get_row_kind()} {row.item} {row.total}"), "kinds")
    out(book.get_side_output(REJECTED), "rejected")
    prices = env.from_collection(
        [("apple", Decimal("0.60")), ("fig", Decimal("2"))],
        Types.TUPLE([Types.STRING(), Types.BIG_DEC()]),
    )
    inserts = orders.filter(lambda row: row.get_row_kind() != RowKind.UPDATE_BEFORE)
    priced = inserts.connect(prices).key_by(
        lambda row: row.item, lambda pair: pair[0], Types.STRING()
    )
    out(priced.process(Priced()), "gains")
    out(orders.map(lambda row: row.as_dict(True)).map(lambda d: sorted(d)), "dictionaries")
    out(orders.map(lambda row: Row(*[row[i] for i in range(len(row))])), "rebuilt")
    out(
        orders.map(lambda row: (row == Row(*row), row[0:2], list(row)[-1], "id" in row, 1 in row)),
        "rows",
    )
