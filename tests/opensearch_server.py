"""An OpenSearch server of the tests' own, which Maven downloads once."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.testing.kafka_broker import MavenServer, ServerUnavailableError, run_at_the_end
from opchain.runtime.testing.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "2.19.4"
OPENSEARCH = MavenServer(
    f"OpenSearch {VERSION}",
    f"opensearch-{VERSION}",
    (
        f"org.opensearch:opensearch:{VERSION}",
        f"org.opensearch.plugin:transport-netty4-client:{VERSION}",
        "org.apache.logging.log4j:log4j-core:2.21.0",
    ),
)
_HOST = "127.0.0.1"
# OpenSearch's own start script is not in Maven. This starts its node with the module that serves HTTP.
_START = """\
import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

class Start {
    static class TestNode extends Node {
        TestNode(Settings settings) {
            super(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "node"),
                  List.of(Netty4Plugin.class), false);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Settings.Builder settings = Settings.builder();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        new TestNode(settings.build()).start();
        Thread.currentThread().join();
    }
}
"""


@dataclass(frozen=True)
class OpenSearch:
    """A running server."""

    port: int

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self.port}"

    def request(self, path: str, method: str = "GET", body: Any = None) -> Any:
        """The answer, from JSON. None if the server does not know the path."""
        request = urllib.request.Request(  # noqa: S310 - http of this machine
            f"{self.url}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - likewise
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:  # HTTP's own
                return None
            raise

    def documents(self, index: str) -> dict[str, Any]:
        """All documents by their ids."""
        if self.request(f"{index}/_refresh", "POST") is None:
            return {}
        hits = self.request(f"{index}/_search?size=10000")["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}


@contextmanager
def opensearch_server() -> Iterator[OpenSearch]:
    """A server on a free port, with its data in a temporary folder; skips the test where there can be none."""
    try:
        jars = OPENSEARCH.install()
    except ServerUnavailableError as error:
        pytest.skip(str(error))
    folder = Path(tempfile.mkdtemp(prefix="opchain-opensearch-"))
    (folder / "Start.java").write_text(_START, "utf-8")
    ports = free_ports(2)
    settings = [
        *(f"path.home={folder}", f"network.host={_HOST}", "discovery.type=single-node"),
        *(f"http.port={ports[0]}", f"transport.port={ports[1]}"),
        "cluster.routing.allocation.disk.threshold_enabled=false",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["java", "-Xmx512m", "-cp", f"{jars}/*", str(folder / "Start.java"), *settings],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        with run_at_the_end("kill", "-9", str(process.pid)):
            server = OpenSearch(ports[0])
            _await_ready(server, process, folder / "log")
            yield server
        process.wait(60)
    finally:
        shutil.rmtree(folder)


def _await_ready(server: OpenSearch, process: subprocess.Popen[bytes], log: Path) -> None:
    ends_at = time.monotonic() + 120
    while True:
        assert process.poll() is None, f"OpenSearch ended: {log.read_text('utf-8')[-2000:]}"
        assert time.monotonic() < ends_at, (
            f"OpenSearch did not start: {log.read_text('utf-8')[-2000:]}"
        )
        try:
            server.request("_cluster/health?wait_for_status=yellow&timeout=30s")
        except (OSError, json.JSONDecodeError):
            continue
        return
