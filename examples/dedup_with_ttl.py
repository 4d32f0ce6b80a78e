"""Drops payments that were delivered twice, and remembers the id of each for an hour.

Look at the time to live (TTL) of the state: without it, the state would grow forever. A payment whose id has expired
counts as new; `tests/examples/test_examples.py` sets a clock to show it.

    $ python examples/dedup_with_ttl.py
    ('p1', 100)
    ('p2', 250)
    ('p3', 75)
    $ opchain code examples/dedup_with_ttl.py
"""

import argparse
from collections.abc import Iterator

from opchain import StreamExecutionEnvironment
from opchain.common import Duration, Types
from opchain.datastream import KeyedProcessFunction, RuntimeContext
from opchain.datastream.state import StateTtlConfig, ValueStateDescriptor

Payment = tuple[str, int]  # id, cents
Context = KeyedProcessFunction.Context[str]

PAYMENTS = [("p1", 100), ("p2", 250), ("p1", 100), ("p3", 75), ("p2", 250), ("p1", 100)]


class FirstOfEachId(KeyedProcessFunction[str, Payment, Payment]):
    def __init__(self, minutes: int) -> None:
        self.minutes = minutes

    def open(self, runtime_context: RuntimeContext) -> None:
        seen = ValueStateDescriptor("seen", Types.BOOLEAN())
        lives = StateTtlConfig.new_builder(Duration.of_minutes(self.minutes))
        seen.enable_time_to_live(lives.update_ttl_on_create_and_write().build())
        self.seen = runtime_context.get_state(seen)

    def process_element(self, value: Payment, ctx: Context) -> Iterator[Payment]:
        if not self.seen.value():
            self.seen.update(True)
            yield value


def build(env: StreamExecutionEnvironment, minutes: int = 60) -> None:
    payments = env.from_collection(PAYMENTS).name("payments")
    once = payments.key_by(lambda payment: payment[0]).process(FirstOfEachId(minutes))
    once.name("once").uid("once").print()


def main() -> None:
    parser = argparse.ArgumentParser(description="Drops payments that were delivered twice.")
    parser.add_argument("--minutes", type=int, default=60, help="how long an id is remembered")
    arguments = parser.parse_args()
    env = StreamExecutionEnvironment.get_execution_environment()
    build(env, arguments.minutes)
    env.execute("deduplication")


if __name__ == "__main__":
    main()
