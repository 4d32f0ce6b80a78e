"""HTTP servers for reports of a job: an OTLP receiver that parses protobuf, and a receiver of JSON events."""

from __future__ import annotations

import gzip
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def receiving(take: Callable[[str, bytes], None]) -> Iterator[str]:
    """Runs a server that passes path and body of each POST request to a function. Yields the address of the server."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            take(self.path, body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature of http.server
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class OtlpReceiver:
    """The data that an OTLP receiver got.

    Attributes:
        points: The last value of each metric, by its name and its attributes.
        spans: All spans, in their order.
        resources: The attributes of the resources.
    """

    def __init__(self) -> None:
        self.points: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        self.spans: list[Any] = []
        self.resources: set[tuple[str, str]] = set()

    def take(self, path: str, body: bytes) -> None:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415
            ExportMetricsServiceRequest,
        )
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415
            ExportTraceServiceRequest,
        )

        if path == "/v1/metrics":
            metrics = ExportMetricsServiceRequest.FromString(body)
            for resource in metrics.resource_metrics:
                self._take_resource(resource.resource)
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        points = self.points.setdefault(metric.name, {})
                        for point in metric.gauge.data_points:
                            key = tuple(sorted(map(_pair, point.attributes)))
                            points[key] = point.as_double or float(point.as_int)
        elif path == "/v1/traces":
            traces = ExportTraceServiceRequest.FromString(body)
            for found in traces.resource_spans:
                self._take_resource(found.resource)
                for scope in found.scope_spans:
                    self.spans += scope.spans
        else:
            raise AssertionError(path)

    def _take_resource(self, resource: Any) -> None:
        self.resources |= set(map(_pair, resource.attributes))


def _pair(item: Any) -> tuple[str, str]:
    return item.key, item.value.string_value


class JsonReceiver(list[dict[str, Any]]):
    """The received JSON values."""

    def take(self, _path: str, body: bytes) -> None:
        self.append(json.loads(body))
