"""Metrics and spans for OpenTelemetry, sent to an OTLP receiver by HTTP.

Metrics have the names of Flink's OpenTelemetryMetricReporter in lower case, because OpenTelemetry's names know no case
and its SDK for Python writes them so: `flink.taskmanager.job.task.operator.numrecordsin`. Each epoch is a trace: a span for the epoch, and one for each of its phases. The run is a span, too, sent at its end. Needs
opentelemetry-sdk and its OTLP exporter (`pip install 'opchain[otel]'`). Headers, timeouts and certificates come from
the environment variables OTEL_EXPORTER_OTLP_*.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from opchain.runtime.epochs.epoch_progress import WAITING, EpochProgress
from opchain.runtime.errors import imported
from opchain.runtime.job.client import JobStatus
from opchain.runtime.reporting.reporting import Reporter
from opchain.runtime.reporting.samples import Sample, families

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.runtime.program.vertex_program import JobProgram

_SCOPE = "opchain"
_MILLISECOND_NS = 1_000_000


class OpenTelemetryReporter(Reporter):
    """Sends the metrics and spans of one job.

    Args:
        endpoint: The receiver's base URL, such as http://collector:4318.
        job: The job.

    Raises:
        MissingLibraryError: opentelemetry-sdk or its exporter is not installed.
    """

    def __init__(self, endpoint: str, job: JobProgram) -> None:
        resource = _library("opentelemetry.sdk.resources").Resource.create(
            {"service.name": job.job_name, "service.namespace": _SCOPE}
        )
        base = endpoint.rstrip("/")
        metrics = _library("opentelemetry.sdk.metrics")
        exporting = _library("opentelemetry.sdk.metrics.export")
        exporter = _library("opentelemetry.exporter.otlp.proto.http.metric_exporter")
        self._reader = exporting.PeriodicExportingMetricReader(
            exporter.OTLPMetricExporter(endpoint=f"{base}/v1/metrics"),
            export_interval_millis=math.inf,  # `report` says when
        )
        self._metrics = metrics.MeterProvider(
            resource=resource, metric_readers=[self._reader], shutdown_on_exit=False
        )
        self._meter = self._metrics.get_meter(_SCOPE)
        tracing = _library("opentelemetry.sdk.trace")
        spans = _library("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        self._traces = tracing.TracerProvider(resource=resource, shutdown_on_exit=False)
        self._traces.add_span_processor(
            _library("opentelemetry.sdk.trace.export").BatchSpanProcessor(
                spans.OTLPSpanExporter(endpoint=f"{base}/v1/traces")
            )
        )
        self._tracer = self._traces.get_tracer(_SCOPE)
        self._job = job
        self._samples: dict[str, list[Sample]] = {}
        self._instruments: set[str] = set()
        self._began_ns = time.time_ns()

    def report(self, samples: list[Sample]) -> None:
        """Sends the metrics."""
        self._samples = families(samples)
        for name in self._samples.keys() - self._instruments:
            dotted = f"flink.{name.replace('_', '.')}"
            self._meter.create_observable_gauge(dotted, callbacks=[self._observing(name)])
            self._instruments.add(name)
        self._metrics.force_flush()

    def _observing(self, name: str) -> Callable[[Any], Iterator[Any]]:
        observation = _library("opentelemetry.metrics").Observation

        def observe(_options: Any) -> Iterator[Any]:
            for sample in self._samples.get(name, ()):
                yield observation(sample.value, sample.labels)

        return observe

    def epoch(self, progress: EpochProgress) -> None:
        """A span for the epoch, and one for each phase."""
        began_ns = progress.timestamp_ms * _MILLISECOND_NS
        attributes = {
            "opchain.job": progress.job,
            "opchain.epoch": progress.epoch,
            "opchain.records_in": progress.records_in,
            "opchain.records_out": progress.records_out,
            "opchain.state_bytes": progress.state_bytes,
            "opchain.checkpoint": progress.checkpoint,
        }
        span = self._tracer.start_span(
            f"epoch {progress.job}",
            context=_library("opentelemetry.context").Context(),  # a trace of its own
            start_time=began_ns,
            attributes=attributes,
        )
        inside = _library("opentelemetry.trace").set_span_in_context(span)
        at_ns = began_ns
        for phase, spent_ms in progress.durations_ms.items():
            if phase == WAITING:
                continue
            child = self._tracer.start_span(phase, context=inside, start_time=at_ns)
            at_ns += int(spent_ms * _MILLISECOND_NS)
            child.end(at_ns)
        span.end(began_ns + int(progress.duration_ms * _MILLISECOND_NS))

    def ended(self, status: JobStatus, error: BaseException | None) -> None:
        """A span for the run."""
        trace = _library("opentelemetry.trace")
        span = self._tracer.start_span(
            f"job {self._job.job_name}",
            context=_library("opentelemetry.context").Context(),
            start_time=self._began_ns,
            attributes={"opchain.job": self._job.job_name, "opchain.status": status.name},
        )
        if status is JobStatus.FAILED:
            span.set_status(trace.Status(trace.StatusCode.ERROR, str(error)))
            if error is not None:
                span.record_exception(error)
        span.end()

    def close(self) -> None:
        """Sends the remaining metrics and spans."""
        self._traces.shutdown()
        self._metrics.shutdown()


def _library(name: str) -> Any:
    return imported(name, "otel", "OpenTelemetry")
