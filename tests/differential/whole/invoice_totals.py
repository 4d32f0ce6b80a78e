"""Invoices with nested positions: totals of an invoice, and of each product."""

# mode: STREAMING
# parallelism: 1
from decimal import Decimal

from pyflink.common import Row, Types

POSITION = Types.ROW_NAMED(
    ["product", "count", "price"], [Types.STRING(), Types.INT(), Types.BIG_DEC()]
)
INVOICE = Types.ROW_NAMED(
    ["id", "positions", "labels"],
    [Types.STRING(), Types.LIST(POSITION), Types.MAP(Types.STRING(), Types.STRING())],
)
INVOICES = {
    "i1": ([("pen", 2, "1.20"), ("ink", 1, "7.95")], {"to": "ann"}),
    "i2": ([("pen", 10, "1.10")], {"to": "bob", "via": "mail"}),
    "i3": ([], {}),
}


def invoice(name):
    positions, labels = INVOICES[name]
    rows = [Row(product, count, Decimal(price)) for product, count, price in positions]
    return Row(name, rows, labels)


def total(invoice):
    return Row(invoice.id, sum(p["count"] * p.price for p in invoice.positions) + Decimal(0))


def build(env, out):
    invoices = env.from_collection(["i1", "i2", "i3"]).map(invoice, output_type=INVOICE)
    out(
        invoices.map(
            total, output_type=Types.ROW_NAMED(["id", "total"], [Types.STRING(), Types.BIG_DEC()])
        ),
        "totals",
    )
    positions = invoices.flat_map(
        lambda i: ((p.product, p[1]) for p in i.positions),
        output_type=Types.TUPLE([Types.STRING(), Types.INT()]),
    )
    out(positions.key_by(lambda p: p[0]).sum(1), "sold")
    out(invoices.map(lambda i: sorted(i.labels.items())), "labels")
