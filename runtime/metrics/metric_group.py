"""Metric groups, one per operator and subtask, where functions register metrics; and Flink's names of built-in metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from opchain.runtime.metrics.histogram import Histogram
from opchain.runtime.metrics.metric_types import Counter, Distribution, Gauge, Meter, Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


NUM_RECORDS_IN = "numRecordsIn"
NUM_RECORDS_OUT = "numRecordsOut"
NUM_BYTES_IN = "numBytesIn"
NUM_BYTES_OUT = "numBytesOut"
NUM_BUFFERS_IN = "numBuffersIn"
NUM_BUFFERS_OUT = "numBuffersOut"
PER_SECOND = "PerSecond"
"""The suffix of the rate of a count."""

CURRENT_INPUT_WATERMARK = "currentInputWatermark"
CURRENT_OUTPUT_WATERMARK = "currentOutputWatermark"

BUSY_TIME = "busyTimeMsPerSecond"
IDLE_TIME = "idleTimeMsPerSecond"
BACK_PRESSURED_TIME = "backPressuredTimeMsPerSecond"

MAILBOX_MAILS = "mailboxMailsPerSecond"
MAILBOX_LATENCY = "mailboxLatencyMs"
MAILBOX_QUEUE = "mailboxQueueSize"
"""In Flink, the mails that wait now; here, the maximum that waited at once."""

LATENCY = "latency"
"""The time that latency markers took from a source, as one histogram for each source operator."""

NUM_LATE_RECORDS_DROPPED = "numLateRecordsDropped"
"""Registered in the metric group of each window operator. Flink: `WindowOperator`."""


def input_watermark_name(number: int) -> str:
    """The name of the watermark of one of several inputs, `number` counting from 0.

    >>> input_watermark_name(0)
    'currentInput1Watermark'
    """
    return f"currentInput{number + 1}Watermark"


M = TypeVar("M", bound="Metric")

SEPARATOR = "."


class MetricGroup:
    """A named group of metrics and of further groups. Flink, PyFlink: `MetricGroup`.

    Requesting a name again returns the same metric or group; a gauge gets the new function. Requesting it as another
    kind of metric is an error. (Flink logs a line, and does not report the second metric.)

    >>> group = MetricGroup(("host", "job", "parse", "0"))
    >>> group.add_group("reasons").counter("too_long").inc()
    >>> group.add_group("reasons").counter("too_long").get_count()
    1
    >>> group.add_group("country", "it").get_metric_identifier("visits")
    'host.job.parse.0.country.it.visits'

    Args:
        scope: The prefix of the metrics' identifiers.
        variables: The variables of the scope, by name in angle brackets.
    """

    def __init__(
        self,
        scope: tuple[str, ...],
        variables: Mapping[str, str] | None = None,
        *,
        path: tuple[str, ...] = (),
        registered: dict[str, Metric] | None = None,
    ) -> None:
        self._scope = scope
        self._variables = dict(variables or {})
        self._path = path
        self._registered: dict[str, Metric] = {} if registered is None else registered

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """The subgroup with this name.

        With `extra`, there are two nested groups, for a key and a value, and the pair becomes a variable of all groups
        in them.
        """
        parts = (_checked(name),) if extra is None else (_checked(name), _checked(extra))
        variables = {f"<{name}>": extra} if extra is not None else {}
        return MetricGroup(
            self._scope,
            self._variables | variables,
            path=self._path + parts,
            registered=self._registered,
        )

    def counter(self, name: str) -> Counter:
        """The counter with this name."""
        return self._metric(name, Counter, Counter)

    def gauge(self, name: str, obj: Callable[[], Any]) -> None:
        """Registers a function that returns a number. It is called at the end of the task."""
        if not callable(obj):
            raise TypeError(f"gauge '{name}': expected a function without arguments, not {obj!r}")
        self._metric(name, Gauge, lambda: Gauge(obj))
        self._registered[self._key(name)] = Gauge(obj)

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """The meter with this name. The first call sets its time span."""
        return self._metric(name, Meter, lambda: Meter(time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        """The distribution with this name."""
        return self._metric(name, Distribution, Distribution)

    def histogram(self, name: str) -> Histogram:
        """The histogram with this name. Not in PyFlink. In Flink, the caller creates the histogram."""
        return self._metric(name, Histogram, Histogram)

    def get_scope_components(self) -> tuple[str, ...]:
        """The parts of the identifiers of this group's metrics, without the metric's name."""
        return self._scope + self._path

    def get_all_variables(self) -> dict[str, str]:
        """The variables of the scope: `<host>`, `<job_name>`, `<operator_name>` and others.

        A group with key and value adds its own variable.
        """
        return dict(self._variables)

    def get_metric_identifier(self, metric_name: str) -> str:
        """The name of a metric of this group, unique in the job."""
        return SEPARATOR.join((*self._scope, *self._path, metric_name))

    def snapshot(self) -> dict[str, Any]:
        """The current values of all metrics of the operator, by their names relative to the operator."""
        return {name: metric.snapshot() for name, metric in self._registered.items()}

    def _key(self, name: str) -> str:
        return SEPARATOR.join((*self._path, _checked(name)))

    def _metric(self, name: str, kind: type[M], make: Callable[[], M]) -> M:
        key = self._key(name)
        metric = self._registered.get(key)
        if metric is None:
            metric = self._registered[key] = make()
        if not isinstance(metric, kind):
            raise TypeError(
                f"'{self.get_metric_identifier(name)}' was requested as a "
                f"{kind.__name__.lower()} but is already registered as a "
                f"{type(metric).__name__.lower()}; choose another name"
            )
        return metric


def _checked(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a metric or group must be a str, not {name!r}")
    return name
