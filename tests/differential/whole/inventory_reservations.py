"""Reservations of stock: two keyed inputs, expiry by timers, outer join at the end, and totals by warehouse."""

# mode: STREAMING
# parallelism: 2
from pyflink.common import Duration, Row, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    OutputTag,
)
from pyflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)


def Stock(item, warehouse, count):
    return Row(item=item, warehouse=warehouse, count=count)


STOCK = [Stock("pen", "N", 10), Stock("ink", "N", 1), Stock("pen", "S", 4), Stock("pad", "S", 0)]
ORDERS = [
    (1, "pen", 3, 1000),
    (2, "ink", 2, 5000),
    (3, "pen", 20, 2000),
    (4, "cap", 1, 100),
    (5, "pen", 2, 900),
    (6, "ink", 1, 200),
]


def order():
    return Types.TUPLE([Types.INT(), Types.STRING(), Types.INT(), Types.LONG()])


SHORT = OutputTag("short", Types.TUPLE([Types.INT(), Types.INT()]))
UNKNOWN = OutputTag("unknown", Types.STRING())


class OrderTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[3]


class Item(KeySelector):
    def get_key(self, value):
        return value.item


class Reserve(KeyedCoProcessFunction):
    """Waits for all stock and orders, then serves orders by their time."""

    def open(self, ctx):
        self.stock = ctx.get_map_state(MapStateDescriptor("stock", Types.STRING(), Types.INT()))
        self.orders = ctx.get_list_state(ListStateDescriptor("orders", order()))

    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        self.stock.put(value.warehouse, (self.stock.get(value.warehouse) or 0) + value["count"])
        ctx.timer_service().register_event_time_timer(10**13)

    def process_element2(self, value, ctx):
        self.orders.add(value)
        ctx.timer_service().register_event_time_timer(10**13)

    def on_timer(self, timestamp, ctx: "KeyedCoProcessFunction.OnTimerContext"):
        if self.stock.is_empty():
            yield UNKNOWN, ctx.get_current_key()
            return
        for number, item, wanted, at in sorted(self.orders, key=lambda order: order[3]):
            taken = []
            for warehouse, count in sorted(
                self.stock.items(), key=lambda pair: (-pair[1], pair[0])
            ):
                if not wanted:
                    break
                take = min(count, wanted)
                wanted -= take
                if take:
                    taken.append((warehouse, take))
                    self.stock.put(warehouse, count - take)
            if wanted:
                yield SHORT, (number, wanted)
            yield Row(number, item, taken)
        left = {k: v for k, v in self.stock.items() if v}
        if not left:
            self.stock.clear()
        yield Row(0, ctx.get_current_key(), sorted(left.items()))


class Expire(KeyedProcessFunction):
    def open(self, ctx):
        self.open_orders = ctx.get_reducing_state(
            ReducingStateDescriptor("open", lambda a, b: a + b, Types.INT())
        )
        self.deadline = ctx.get_state(ValueStateDescriptor("deadline", Types.LONG()))

    def process_element(self, value, ctx):
        self.open_orders.add(value[2])
        deadline = self.deadline.value()
        if deadline is None or value[3] + 500 < deadline:
            if deadline is not None:
                ctx.timer_service().delete_event_time_timer(deadline)
            self.deadline.update(value[3] + 500)
            ctx.timer_service().register_event_time_timer(value[3] + 500)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, self.open_orders.get()
        self.open_orders.clear()


class Tag(CoMapFunction):
    def map1(self, value):
        return "stock", value.item

    def map2(self, value):
        return "order", value[1]


def build(env, out):
    env.set_parallelism(1)
    stock = env.from_collection(STOCK)
    orders = env.from_collection(ORDERS, order()).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_minutes(1)
        ).with_timestamp_assigner(OrderTime())
    )
    env.set_parallelism(2)
    reserved = (
        stock.connect(orders)
        .key_by(Item(), lambda order: order[1])
        .process(
            Reserve(),
            Types.ROW(
                [
                    Types.INT(),
                    Types.STRING(),
                    Types.LIST(Types.TUPLE([Types.STRING(), Types.INT()])),
                ]
            ),
        )
    )
    out(reserved, "reserved")
    out(reserved.get_side_output(SHORT), "short")
    out(reserved.get_side_output(UNKNOWN), "unknown")
    out(orders.key_by(lambda order: order[1], Types.STRING()).process(Expire()), "expired")
    out(
        stock.key_by(lambda s: s.warehouse).connect(orders.key_by(lambda o: o[1])).map(Tag()),
        "tags",
    )
    out(
        stock.connect(orders)
        .key_by(lambda s: s.item, lambda o: o[1], key_type=Types.STRING())
        .map(Tag(), Types.TUPLE([Types.STRING(), Types.STRING()])),
        "typed tags",
    )
    out(reserved.get_side_output(SHORT).key_by(lambda v: v[0] % 2).max(1), "most short")
    out(
        stock.key_by(lambda s: s.warehouse)
        .reduce(lambda a, b: Stock(f"{a.item},{b.item}", a.warehouse, a["count"] + b["count"]))
        .map(lambda s: s["count"]),
        "counts",
    )
