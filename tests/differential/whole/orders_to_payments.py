"""Two inputs with list and map state, timers and side outputs: what is matched, late or left over."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import CoFlatMapFunction, CoMapFunction, KeyedCoProcessFunction, OutputTag
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

ORDERS = [
    ("o1", "ada", 30, 1000),
    ("o2", "bob", 20, 2000),
    ("o3", "ada", 10, 90_000),
    ("o4", "cyd", 5, 4000),
]
PAYMENTS = [
    ("o1", 30, 3000),
    ("o3", 4, 95_000),
    ("o3", 6, 96_000),
    ("o9", 1, 1),
    ("o2", 20, 100_000),
]
UNPAID = OutputTag("unpaid", Types.TUPLE([Types.STRING(), Types.INT()]))
UNKNOWN = OutputTag("unknown")


class Last(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[-1]


class Match(KeyedCoProcessFunction):
    WAIT = 60_000

    def open(self, ctx):
        self.order = ctx.get_state(ValueStateDescriptor("order", Types.PICKLED_BYTE_ARRAY()))
        self.payments = ctx.get_list_state(
            ListStateDescriptor("payments", Types.TUPLE([Types.INT(), Types.LONG()]))
        )
        self.timers = ctx.get_map_state(MapStateDescriptor("timers", Types.LONG(), Types.STRING()))

    def _register(self, time, why, ctx):
        self.timers.put(time, why)
        ctx.timer_service().register_event_time_timer(time)

    def process_element1(self, value, ctx):
        self.order.update(value)
        self._register(value[3] + self.WAIT, "order", ctx)

    def process_element2(self, value, ctx):
        self.payments.add((value[1], value[2]))
        self._register(value[2] + self.WAIT * 2, "payment", ctx)

    def on_timer(self, timestamp, ctx):
        why = self.timers.get(timestamp)
        self.timers.remove(timestamp)
        order = self.order.value()
        paid = [amount for amount, at in self.payments if order and at <= order[3] + self.WAIT]
        if why == "order":
            if sum(paid) == order[2]:
                yield order[1], order[0], paid
            else:
                yield UNPAID, (order[0], order[2] - sum(paid))
        elif order is None:
            yield UNKNOWN, {"key": ctx.get_current_key(), "payments": list(self.payments)}


class Merge(CoFlatMapFunction):
    def flat_map1(self, value):
        if value[2] > 15:
            yield value[0]
            yield value[1]

    def flat_map2(self, value):
        return [f"paid {value[0]}"] if value[1] > 5 else None


class Amounts(CoMapFunction):
    def map1(self, value):
        return value[2] if value[1] != "cyd" else None

    def map2(self, value):
        return -value[1]


class Balance(CoMapFunction):
    def open(self, ctx):
        self.balance = ctx.get_state(ValueStateDescriptor("balance", Types.LONG()))

    def map1(self, value):
        return self._add("order", value[2])

    def map2(self, value):
        return self._add("payment", -value[1])

    def _add(self, what, amount):
        self.balance.update((self.balance.value() or 0) + amount)
        return what


def build(env, out):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_hours(1)
    ).with_timestamp_assigner(Last())
    orders = env.from_collection(ORDERS).assign_timestamps_and_watermarks(strategy)
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy)
    both = orders.connect(payments)
    matched = both.key_by(lambda o: o[0], lambda p: p[0], Types.STRING()).process(Match())
    out(matched, "matched")
    out(matched.get_side_output(UNPAID), "unpaid")
    out(matched.get_side_output(UNKNOWN), "unknown")
    out(both.flat_map(Merge(), Types.STRING()), "merged")
    out(both.map(Amounts()), "amounts")
    out(both.key_by(lambda o: o[0], lambda p: p[0]).map(Balance(), Types.STRING()), "keyed map")
    out(both.key_by(lambda o: o[1], lambda p: "ada").flat_map(Merge()), "keyed flat map")
    keyed = orders.key_by(lambda o: o[0]).connect(payments.key_by(lambda p: p[0]))
    out(keyed.map(Balance()), "keyed before")
