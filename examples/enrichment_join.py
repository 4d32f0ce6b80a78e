"""Adds the customer's name to each order. An order that arrives before its customer waits.

Look at the two inputs of one operator: they share keyed state, and either may be ahead of the other.
An event-time timer ends the wait: sam never signs up, so his order is emitted with '?' as the name.

    $ python examples/enrichment_join.py
    ('ann', 'Ann Lee', 'shoes')
    ('ann', 'Ann Lee', 'scarf')
    ('bob', 'Bob Ray', 'hat')
    ('sam', '?', 'belt')
"""

import argparse

from opchain.common import Types, WatermarkStrategy
from opchain.datastream import KeyedCoProcessFunction, RuntimeContext, StreamExecutionEnvironment
from opchain.datastream.state import ListStateDescriptor, ValueStateDescriptor

Record = tuple[str, str, int]  # customer; name or item; minute
Named = tuple[str, str, str]  # customer, name, item
Context = KeyedCoProcessFunction.Context[str]
CUSTOMERS = [("ann", "Ann Lee", 0), ("bob", "Bob Ray", 7)]
ORDERS = [("ann", "shoes", 2), ("bob", "hat", 3), ("sam", "belt", 4), ("ann", "scarf", 9)]


class AddName(KeyedCoProcessFunction[str, Record, Record, Named]):
    def __init__(self, patience: int) -> None:
        self.patience = patience

    def open(self, runtime_context: RuntimeContext) -> None:
        self.name = runtime_context.get_state(ValueStateDescriptor("name", Types.STRING()))
        self.items = runtime_context.get_list_state(ListStateDescriptor("items", Types.STRING()))

    def process_element1(self, value: Record, ctx: Context) -> list[Named]:
        self.items.add(value[1])
        ctx.timer_service().register_event_time_timer((value[2] + self.patience) * 60_000)
        return [] if self.name.value() is None else self.named(value[0])

    def process_element2(self, value: Record, ctx: Context) -> list[Named]:
        self.name.update(value[1])
        return self.named(value[0])

    def on_timer(self, timestamp: int, ctx: Context) -> list[Named]:
        return self.named(ctx.get_current_key())

    def named(self, customer: str) -> list[Named]:
        items = list(self.items.get() or ())
        self.items.clear()
        return [(customer, self.name.value() or "?", item) for item in items]


def build(env: StreamExecutionEnvironment, patience: int = 60) -> None:
    in_order = WatermarkStrategy.for_monotonous_timestamps()
    timed = in_order.with_timestamp_assigner(lambda record, _: record[2] * 60_000)
    orders = env.from_collection(ORDERS).name("orders").assign_timestamps_and_watermarks(timed)
    customers = env.from_collection(CUSTOMERS).assign_timestamps_and_watermarks(timed)
    both = orders.key_by(lambda order: order[0]).connect(customers.key_by(lambda who: who[0]))
    both.process(AddName(patience)).name("add name").uid("add name").print()


def main() -> None:
    parser = argparse.ArgumentParser(description="Adds the customer's name to each order.")
    parser.add_argument("--patience", type=int, default=60, help="minutes an order waits for")
    env = StreamExecutionEnvironment.get_execution_environment()
    build(env, parser.parse_args().patience)
    env.execute("orders with names")


if __name__ == "__main__":
    main()
