"""Alerts by thresholds that come from a broadcast stream, kept apart by their severity."""

# mode: BATCH
# parallelism: 1
from pyflink.common import Row, Types
from pyflink.datastream import KeyedBroadcastProcessFunction, OutputTag
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

METRICS = [("cpu", "h1", 0.5), ("cpu", "h2", 0.97), ("disk", "h1", 0.8), ("cpu", "h1", 0.91)]
THRESHOLDS = [("cpu", 0.9), ("disk", 0.7), ("cpu", 0.6)]
STATE = MapStateDescriptor("thresholds", Types.STRING(), Types.DOUBLE())
CRITICAL = OutputTag("critical", Types.ROW([Types.STRING(), Types.DOUBLE()]))


class Alert(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self.worst = runtime_context.get_state(ValueStateDescriptor("worst", Types.DOUBLE()))

    def process_element(self, value, ctx):
        name, host, level = value
        threshold = ctx.get_broadcast_state(STATE).get(name)
        if threshold is None or level <= threshold:
            return
        worst = self.worst.value()
        if worst is None or level > worst:
            self.worst.update(level)
            yield f"{host} {name} {level} > {threshold}"
        if level > 0.95:
            yield CRITICAL, Row(ctx.get_current_key(), level)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(STATE).put(value[0], value[1])


def build(env, out):
    thresholds = env.from_collection(
        THRESHOLDS, Types.TUPLE([Types.STRING(), Types.DOUBLE()])
    ).broadcast(STATE)
    metrics = env.from_collection(
        METRICS, Types.TUPLE([Types.STRING(), Types.STRING(), Types.DOUBLE()])
    )
    alerts = (
        metrics.key_by(lambda m: m[1], key_type=Types.STRING())
        .connect(thresholds)
        .process(Alert(), Types.STRING())
    )
    out(alerts, "alerts")
    out(alerts.get_side_output(CRITICAL), "critical")
