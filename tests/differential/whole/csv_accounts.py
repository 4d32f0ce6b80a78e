"""Lines of a CSV text become bookings, which make the balances of accounts."""

# mode: STREAMING
# parallelism: 1
import csv
from decimal import ROUND_HALF_UP, Decimal

from pyflink.common import Row, RowKind, Types

LINES = [
    "date,account,amount,text",
    '2024-01-31,A-1,"1,200.50","salary, january"',
    "2024-02-01,A-1,-19.99,book",
    '2024-02-01,B-7,0.005,"""interest"""',
    "2024-02-02,A-1,-700,rent",
]
BOOKING = Types.ROW_NAMED(
    ["date", "account", "amount", "text"],
    [Types.STRING(), Types.STRING(), Types.BIG_DEC(), Types.STRING()],
)


class Parse:
    """An object that can be called is a function, too."""

    def __init__(self, cent):
        self.cent = Decimal(cent)

    def __call__(self, line):
        date, account, amount, text = next(csv.reader([line]))
        value = Decimal(amount.replace(",", "")).quantize(self.cent, ROUND_HALF_UP)
        return Row(date, account, value, text)


def build(env, out):
    parse = Parse("0.01")
    bookings = (
        env.from_collection(LINES, Types.STRING())
        .filter(lambda line: not line.startswith("date"))
        .map(lambda line: parse(line), BOOKING)
    )
    out(bookings, "bookings")
    balances = bookings.key_by(lambda b: b.account).reduce(
        lambda a, b: Row(date=b.date, account=a.account, amount=a.amount + b.amount, text="balance")
    )
    out(balances.map(lambda b: f"{b.account}: {b.amount} ({b.text})", Types.STRING()), "balances")
    out(bookings.map(lambda b: b.get_row_kind() == RowKind.INSERT, Types.BOOLEAN()), "kinds")
