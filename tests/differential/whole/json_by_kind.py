"""JSON texts of several kinds: orders, clicks, and what cannot be read."""

# mode: STREAMING
# parallelism: 1
import json

from pyflink.common import Row, Types
from pyflink.datastream import OutputTag, ProcessFunction

TEXTS = [
    '{"kind": "order", "user": "ann", "amount": 12.5, "tags": ["new", "gift"]}',
    '{"kind": "click", "user": "bob", "page": {"path": "/a", "query": null}}',
    '{"kind": "order", "user": "bob", "amount": 3}',
    "{broken",
    '{"kind": "order", "user": "eve"}',
    "[]",
    '{"kind": "click", "user": "ann", "page": {"path": "/b", "query": "x=1"}}',
    "",
]
CLICK = Types.ROW_NAMED(["user", "path", "query"], [Types.STRING()] * 3)
CLICKS = OutputTag("clicks", CLICK)
UNREADABLE = OutputTag("unreadable", Types.TUPLE([Types.STRING(), Types.STRING()]))
UNTYPED = OutputTag("untyped")


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        try:
            event = json.loads(value)
            kind = event["kind"]
            if kind == "click":
                page = event["page"]
                yield CLICKS, Row(user=event["user"], path=page["path"], query=page["query"])
            else:
                yield Row(event["user"], event["amount"], event.get("tags", []))
                yield UNTYPED, event
        except (ValueError, KeyError, TypeError) as error:
            yield UNREADABLE, (value, type(error).__name__)


def build(env, out):
    orders = env.from_collection(TEXTS, type_info=Types.STRING()).process(
        Split(),
        output_type=Types.ROW_NAMED(
            ["user", "amount", "tags"],
            [Types.STRING(), Types.DOUBLE(), Types.BASIC_ARRAY(Types.STRING())],
        ),
    )
    out(orders, "orders")
    out(orders.get_side_output(CLICKS).map(lambda c: c.path + "?" + str(c.query)), "clicks")
    out(orders.get_side_output(UNREADABLE), "unreadable")
    out(orders.get_side_output(UNTYPED).map(lambda e: sorted(e)), "untyped")
