"""The metrics of a job in the metrics system of Spark's driver.

Python cannot register a source there, since Spark's `Source` is private to Spark. But Spark has a public source that
shows accumulators, DoubleAccumulatorSource. So each metric is an accumulator of the driver's JVM, whose value is
replaced. Spark's sinks (JMX, Graphite, the servlet at /metrics/json) show it as `AccumulatorSource.JOB.NAME`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from opchain.runtime.reporting.reporting import Reporter
from opchain.runtime.spark.session import active_or_new_session

if TYPE_CHECKING:
    from opchain.runtime.reporting.samples import Sample

_SOURCE = "org.apache.spark.metrics.source.DoubleAccumulatorSource"
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_PLACE = ("operator_name", "task_name", "subtask_index", "partition", "phase", "quantile")


class SparkMetrics(Reporter):
    """Sets the accumulators of one job."""

    def __init__(self, job_name: str) -> None:
        self._job_name = job_name
        session = active_or_new_session()
        self._context: Any = session.sparkContext._jsc.sc()  # noqa: SLF001 - there is no public access
        self._jvm: Any = session.sparkContext._jvm  # noqa: SLF001 - likewise
        self._accumulators: dict[str, Any] = {}

    def report(self, samples: list[Sample]) -> None:
        """Replaces the values, and registers new metrics."""
        new = []
        for sample in samples:
            name = self._name(sample)
            accumulator = self._accumulators.get(name)
            if accumulator is None:
                accumulator = self._context.doubleAccumulator(name)
                self._accumulators[name] = accumulator
                new.append(name)
            accumulator.reset()
            accumulator.add(float(sample.value))
        if new:
            found = self._jvm.java.util.HashMap()
            for name in new:
                found.put(name, self._accumulators[name])
            as_map = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(found)
            # A Scala object: py4j does not find its methods as static methods of the class.
            module = self._jvm.java.lang.Class.forName(f"{_SOURCE}$").getField("MODULE$")
            module.get(None).register(self._context, as_map)

    def _name(self, sample: Sample) -> str:
        """Job, place and name, with characters that all of Spark's sinks accept."""
        labels = sample.labels
        name = sample.name.rpartition("_")[2]
        place = [labels[key] for key in _PLACE if key in labels]
        if "operator_name" in labels and "task_name" in labels:
            place.remove(labels["task_name"])
        return ".".join(_NOT_A_NAME.sub("-", part) for part in (self._job_name, *place, name))
