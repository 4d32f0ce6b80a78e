"""Fraud detection with several value states and timers, alerts to a side output, and a summary at the end."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Duration, Row, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, OutputTag, RuntimeContext
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor


def payment():
    return Types.ROW_NAMED(
        ["account", "amount", "country", "at"],
        [Types.STRING(), Types.DOUBLE(), Types.STRING(), Types.LONG()],
    )


ALERT = OutputTag("alerts", Types.ROW_NAMED(["account", "why"], [Types.STRING(), Types.STRING()]))
COUNTRIES = OutputTag(
    "countries", Types.TUPLE([Types.STRING(), Types.MAP(Types.STRING(), Types.INT())])
)
SMALL, LARGE, MINUTE = 1.0, 500.0, 60_000


class Times(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value.at


class FraudDetector(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.flag = runtime_context.get_state(ValueStateDescriptor("flag", Types.BOOLEAN()))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))
        self.last = runtime_context.get_state(ValueStateDescriptor("last", payment()))
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.DOUBLE()))
        self.countries = runtime_context.get_map_state(
            MapStateDescriptor("countries", Types.STRING(), Types.INT())
        )

    def process_element(self, value: Row, ctx: "KeyedProcessFunction.Context"):
        last = self.last.value()
        if self.flag.value():
            if value.amount >= LARGE:
                yield ALERT, Row(account=value.account, why=f"{value.amount} after {last.amount}")
            self.clean_up(ctx)
        if value.amount < SMALL:
            self.flag.update(True)
            due = ctx.timestamp() + MINUTE
            ctx.timer_service().register_event_time_timer(due)
            self.timer.update(due)
        if last is not None and last.country != value.country and value.at - last.at < MINUTE:
            yield ALERT, Row("travels", value.account)
        self.last.update(value)
        self.total.update((self.total.value() or 0.0) + value.amount)
        self.countries.put(value.country, (self.countries.get(value.country) or 0) + 1)
        ctx.timer_service().register_event_time_timer(9_000_000)
        yield Row(value["account"], round(self.total.value(), 2))

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        if timestamp == self.timer.value():
            self.flag.clear()
            self.timer.clear()
        if timestamp == 9_000_000:
            found = {country: count for country, count in self.countries.items()}
            yield COUNTRIES, (ctx.get_current_key(), found)

    def clean_up(self, ctx):
        timer = self.timer.value()
        ctx.timer_service().delete_event_time_timer(timer)
        self.timer.clear()
        self.flag.clear()


PAYMENTS = [
    ("ada", 0.5, "DE", 1_000),
    ("bob", 0.1, "FR", 2_000),
    ("ada", 700.0, "DE", 31_000),
    ("bob", 900.0, "FR", 90_000),
    ("cyd", 20.25, "US", 5_000),
    ("cyd", 0.75, "JP", 9_000),
    ("cyd", 0.25, "JP", 10_000),
    ("cyd", 501.5, "US", 11_000),
    ("ada", 0.01, "DE", 100_000),
]


def build(env, out):
    payments = payment()
    source = env.from_collection([Row(*values) for values in PAYMENTS], payments)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(5))
    timed = source.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Times()))
    result = timed.key_by(lambda row: row.account, Types.STRING()).process(
        FraudDetector(), Types.ROW_NAMED(["who", "sum"], [Types.STRING(), Types.DOUBLE()])
    )
    out(result, "totals")
    out(result.get_side_output(ALERT).map(lambda row: f"{row.account}: {row.why}"), "alerts")
    out(
        result.get_side_output(COUNTRIES).map(lambda pair: (pair[0], sorted(pair[1].items()))),
        "countries",
    )
    spread = result.filter(lambda row: row.sum > 100).map(lambda row: row.as_dict())
    out(spread, "large")
