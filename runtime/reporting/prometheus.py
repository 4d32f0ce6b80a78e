"""Metrics for Prometheus: the text of an endpoint, a server with this endpoint, and a file for node_exporter.

Names begin with `flink_`, as those of Flink's PrometheusReporter; all are gauges there and here. Needs
prometheus_client (`pip install 'opchain[prometheus]'`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnsupportedFeatureError, imported
from opchain.runtime.reporting.reporting import Reporter
from opchain.runtime.reporting.samples import Sample, families

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


PREFIX = "flink_"
_NOT_A_NAME = re.compile(r"[^a-zA-Z0-9_]")
_ADDRESS = re.compile(r"(?P<host>[^:]*|\[[^]]*\]):(?P<port>\d{1,5})")


def exposition(samples: Iterable[Sample]) -> bytes:
    """The samples in Prometheus' text format.

    Raises:
        MissingLibraryError: prometheus_client is not installed.
    """
    return _library("prometheus_client").generate_latest(_registry(lambda: samples))  # type: ignore[no-any-return]


def _registry(samples: Callable[[], Iterable[Sample]]) -> Any:
    client = _library("prometheus_client")
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(_Collector(samples))
    return registry


class _Collector:
    """Flink: PrometheusReporter."""

    def __init__(self, samples: Callable[[], Iterable[Sample]]) -> None:
        self._samples = samples

    def describe(self) -> list[Any]:
        """Nothing: which metrics there are is known when they are asked for."""
        return []

    def collect(self) -> Iterator[Any]:
        """A family for each name."""
        core = _library("prometheus_client.core")
        for name, members in families(self._samples()).items():
            family = core.GaugeMetricFamily(
                PREFIX + _NOT_A_NAME.sub("_", name), name.rpartition("_")[2]
            )
            for member in members:
                family.add_sample(family.name, member.labels, member.value)
            yield family


class PrometheusEndpoint(Reporter):
    """An HTTP server that answers Prometheus while the job runs.

    Args:
        address: HOST:PORT; an empty host listens on all interfaces.
        samples: Gives the samples.

    Raises:
        UnsupportedFeatureError: The address cannot be read or used.
    """

    def __init__(self, address: str, samples: Callable[[], Iterable[Sample]]) -> None:
        match = _ADDRESS.fullmatch(address)
        if match is None:
            raise UnsupportedFeatureError(
                f"opchain.metrics.prometheus.address is {address!r}; it must be HOST:PORT, such as 0.0.0.0:9249"
            )
        client = _library("prometheus_client")
        host = match["host"].strip("[]") or "0.0.0.0"  # noqa: S104 - as the user says
        try:
            self._server, self._thread = client.start_http_server(
                int(match["port"]), host, _registry(samples)
            )
        except (OSError, OverflowError) as error:
            raise UnsupportedFeatureError(
                f"opchain.metrics.prometheus.address is {address}, where no server can listen ({error}): choose a free "
                "port; each job of a process needs its own"
            ) from error
        self.port: int = self._server.server_port

    def close(self) -> None:
        """Ends the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class PrometheusTextfile(Reporter):
    """Writes a file for the textfile collector of node_exporter; readers never see half of it.

    Args:
        path: The file; its folder exists. node_exporter reads names that end in .prom.
    """

    def __init__(self, path: str) -> None:
        _library("prometheus_client")
        self._path = path

    def report(self, samples: list[Sample]) -> None:
        """Replaces the file."""
        _library("prometheus_client").write_to_textfile(self._path, _registry(lambda: samples))


def _library(name: str) -> Any:
    return imported(name, "prometheus", "metrics for Prometheus")
