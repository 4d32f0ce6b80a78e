"""Apache Kafka on this machine: brokers for tests and experiments.

Brokers run in KRaft mode, without ZooKeeper, and listen on the loopback interface only. The first broker is also the
controller, so any other may be killed.
"""

from __future__ import annotations

import base64
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StreamError, imported
from opchain.runtime.testing.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator


class ServerUnavailableError(StreamError):
    """A test server, such as Kafka, cannot be downloaded or started on this machine.

    What to do: Install Java and Maven, or start a server yourself.
    """


@dataclass(frozen=True)
class MavenServer:
    """A server whose jars Maven knows.

    Attributes:
        name: What people call it.
        folder_name: Below the user's cache folder; it has the version.
        artifacts: `group:artifact:version` of each. The jars that they depend on are downloaded, too.
    """

    name: str
    folder_name: str
    artifacts: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where the jars are, once they are installed."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "opchain" / self.folder_name

    def missing(self) -> str | None:
        """None if the server can be started here, else what is missing."""
        if shutil.which("java") is None:
            return "needs Java 17 or later on the PATH"
        if not self.folder.exists() and shutil.which("mvn") is None:
            return f"needs Maven (mvn) on the PATH to download {self.name}"
        return None

    def install(self) -> Path:
        """Downloads the jars unless they are there. Returns their folder.

        Raises:
            ServerUnavailableError: Java or Maven is missing, or the download fails.
        """
        missing = self.missing()
        if missing is not None:
            raise ServerUnavailableError(f"{self.name} can't be started: it {missing}")
        folder = self.folder
        if folder.exists():
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            (Path(scratch) / "pom.xml").write_text(_pom(self.artifacts), "utf-8")
            done = subprocess.run(  # noqa: S603 - Maven
                [
                    *("mvn", "-q", "-B", "dependency:copy-dependencies"),
                    f"-DoutputDirectory={scratch}/jars",
                ],
                cwd=scratch,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise ServerUnavailableError(
                    f"Maven could not download {self.name}: {(done.stdout + done.stderr)[-500:]}"
                )
            try:
                (Path(scratch) / "jars").rename(folder)
            except OSError:
                if not folder.exists():  # another process was faster
                    raise
        return folder


def _pom(artifacts: tuple[str, ...]) -> str:
    lines = [
        '<project xmlns="http://maven.apache.org/POM/4.0.0">',
        "  <modelVersion>4.0.0</modelVersion>",
        "  <groupId>opchain</groupId> <artifactId>server</artifactId> <version>1</version>",
        "  <dependencies>",
    ]
    for artifact in artifacts:
        group, name, version = artifact.split(":")
        lines.append(
            f"    <dependency> <groupId>{group}</groupId> <artifactId>{name}</artifactId> "
            f"<version>{version}</version> </dependency>"
        )
    return "\n".join([*lines, "  </dependencies>", "</project>", ""])


VERSION = "4.3.0"
KAFKA = MavenServer(
    f"Apache Kafka {VERSION}", f"kafka-{VERSION}", (f"org.apache.kafka:kafka_2.13:{VERSION}",)
)
USER, PASSWORD = "opchain", "opchain-secret"
"""The user and password of the listener with a login."""

_HOST = "127.0.0.1"
_JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
)


@dataclass
class KafkaBroker:
    """One broker: its process and its data folder."""

    node: int
    port: int
    login_port: int
    folder: Path
    command: list[str]
    process: subprocess.Popen[bytes] | None = None

    @property
    def note(self) -> Path:
        """Holds the id of the process while it runs."""
        return self.folder / "pid"

    def start(self) -> None:
        """Starts the process; `KafkaBrokers.await_ready` waits for it."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - Kafka's own main class
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
            )
        self.note.write_text(str(self.process.pid), "utf-8")

    def kill(self) -> None:
        """Ends the process at once, as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Asks the process to end, and waits."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Stops the process with SIGSTOP."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continues a paused process."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def _end(self, number: int) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(number)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
        self.note.unlink()


@dataclass
class KafkaBrokers:
    """Running brokers of one cluster."""

    brokers: list[KafkaBroker] = field(default_factory=list)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses that need no password."""
        return ",".join(f"{_HOST}:{broker.port}" for broker in self.brokers)

    @property
    def login_servers(self) -> str:
        """The addresses that ask for a password (SASL_PLAINTEXT, PLAIN)."""
        return ",".join(f"{_HOST}:{broker.login_port}" for broker in self.brokers)

    def await_ready(self, timeout_s: float = 120) -> None:
        """Waits until all brokers have joined the cluster.

        Raises:
            ServerUnavailableError: They don't in time; the message has the end of a log.
        """
        admin = imported("confluent_kafka.admin", "kafka", "Kafka")
        # The client logs each refused connection until the broker is up.
        silent = logging.Logger("opchain.kafka.starting", logging.CRITICAL + 1)  # noqa: LOG001 - no one else has it
        client = admin.AdminClient({"bootstrap.servers": self.bootstrap_servers}, logger=silent)
        ends_at = time.monotonic() + timeout_s
        while time.monotonic() < ends_at:
            for broker in self.brokers:
                if broker.process is not None and broker.process.poll() is not None:
                    raise ServerUnavailableError(
                        f"Kafka broker {broker.node} ended while it started: {_tail(broker)}"
                    )
            if self._joined(client) == len(self.brokers):
                return
        raise ServerUnavailableError(
            f"Kafka did not start within {timeout_s:g} s: {_tail(self.brokers[0])}"
        )

    def _joined(self, client: Any) -> int:
        library = imported("confluent_kafka", "kafka", "Kafka")
        try:
            return len(client.list_topics(timeout=1).brokers)
        except library.KafkaException:
            return 0


@contextmanager
def run_at_the_end(*command: str) -> Iterator[None]:
    """Runs a command when the block ends, or when this process does, even if it is killed."""
    guard = subprocess.Popen(  # noqa: S603 - the caller's own command
        ["/bin/sh", "-c", 'trap "" INT TERM HUP; read -r nothing; "$@"', "guard", *command],
        stdin=subprocess.PIPE,  # it is closed when this process ends
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    try:
        yield
    finally:
        guard.communicate()


@contextmanager
def kafka_brokers(
    folder: Path,
    *,
    count: int = 1,
    port: int | None = None,
    properties: dict[str, str] | None = None,
) -> Iterator[KafkaBrokers]:
    """Runs brokers until the block ends.

    Args:
        folder: For their data and logs.
        count: How many; topics and Kafka's own have a copy on each.
        port: The first broker's port; a free one if not given.
        properties: Further settings of the brokers.

    Raises:
        ServerUnavailableError: They don't start.
    """
    jars = KAFKA.install()
    # May begin with "-": the tool that formats takes such an id for a value only after "=".
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    ports = free_ports(2 * count + 1)
    controller = ports.pop()
    if port is not None:
        ports[0] = port
    brokers = KafkaBrokers()
    kill_all = 'for note in "$0"/broker-*/pid; do [ -f "$note" ] && kill -9 "$(cat "$note")"; done'
    with run_at_the_end("/bin/sh", "-c", kill_all, str(folder)):
        try:
            for node in range(1, count + 1):
                own = ports[2 * (node - 1) : 2 * node]
                place = folder / f"broker-{node}"
                brokers.brokers.append(
                    _formatted(jars, place, node, own, controller, cluster, count, properties or {})
                )
                brokers.brokers[-1].start()
            brokers.await_ready()
            yield brokers
        finally:
            for broker in reversed(brokers.brokers):
                broker.kill()


def _formatted(
    jars: Path,
    folder: Path,
    node: int,
    ports: list[int],
    controller: int,
    cluster: str,
    count: int,
    properties: dict[str, str],
) -> KafkaBroker:
    """A broker with an empty log folder, not started yet."""
    folder.mkdir(parents=True)
    is_controller = node == 1
    listeners = {"PLAINTEXT": ports[0], "LOGIN": ports[1]}
    served = listeners | {"CONTROLLER": controller} if is_controller else listeners
    in_sync = max(count - 1, 1)
    settings = {
        "process.roles": "broker,controller" if is_controller else "broker",
        "node.id": node,
        "controller.quorum.bootstrap.servers": f"{_HOST}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(f"{name}://{_HOST}:{port}" for name, port in served.items()),
        "advertised.listeners": ",".join(
            f"{name}://{_HOST}:{port}" for name, port in listeners.items()
        ),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": _JAAS,
        "log.dirs": folder / "data",
        "default.replication.factor": count,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": count,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": count,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": count,
        "share.coordinator.state.topic.min.isr": in_sync,
        "group.initial.rebalance.delay.ms": 0,
        "log.retention.ms": -1,  # messages may have timestamps of long ago
        **properties,
    }
    file = folder / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), "utf-8")
    # A test's broker lives for seconds: the slower compiler of Java does not pay.
    java = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
    how = "--standalone" if is_controller else "--no-initial-controllers"
    done = subprocess.run(  # noqa: S603 - Kafka's own tool
        [
            *java,
            "kafka.tools.StorageTool",
            "format",
            how,
            f"--cluster-id={cluster}",
            "-c",
            str(file),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode:
        raise ServerUnavailableError(
            f"Kafka's storage could not be formatted in {folder}: {(done.stdout + done.stderr)[-500:]}"
        )
    command = [*java, "kafka.Kafka", str(file)]
    return KafkaBroker(node, ports[0], ports[1], folder, command)


def _tail(broker: KafkaBroker) -> str:
    log = broker.folder / "log"
    return f"its log, {log}, ends with: {log.read_text('utf-8', 'replace')[-500:]}"
