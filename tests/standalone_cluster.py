"""A Spark standalone cluster on this machine: for what a local master cannot show.

A local master keeps all tasks in one JVM, fetches buffers in one order, and retries nothing unless told to.
Here executors are processes of their own, which tests may kill.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.runtime.errors import SparkUnavailableError
from opchain.runtime.spark.session import spark_home
from opchain.runtime.testing.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HOST = "127.0.0.1"
_ADDRESSES = "worker-addresses"
_EXECUTOR_CLASS = "CoarseGrainedExecutorBackend"
_PYTHON_DAEMON = "pyspark.daemon"


@dataclass(frozen=True, slots=True)
class StandaloneCluster:
    """A running cluster. `url` is the master's; `folder` holds the logs and work folders."""

    url: str
    folder: Path

    def executors(self) -> list[int]:
        """The process ids of the executors' JVMs, oldest first."""
        return [pid for pid, _, command in _processes() if self._is_executor(command)]

    def python_daemons(self) -> list[int]:
        """The process ids of the executors' Python daemons, which fork the workers."""
        executors = set(self.executors())
        return [
            pid
            for pid, parent, command in _processes()
            if parent in executors and _PYTHON_DAEMON in command
        ]

    def _is_executor(self, command: str) -> bool:
        # Executors know their worker by its address, which no other cluster has.
        return _EXECUTOR_CLASS in command and any(address in command for address in self._workers())

    def _workers(self) -> list[str]:
        return (self.folder / _ADDRESSES).read_text("utf-8").split()


@contextmanager
def standalone_cluster(
    folder: Path, *, workers: int = 2, cores: int = 1, memory: str = "1g", timeout_s: float = 90
) -> Iterator[StandaloneCluster]:
    """Runs a master and workers until the block ends.

    Args:
        folder: For logs and work folders.
        workers: How many.
        cores: Of each worker.
        memory: Of each worker, for its executors.
        timeout_s: How long the start may take.

    Raises:
        SparkUnavailableError: It doesn't start; the message names the log.
    """
    ports = free_ports(workers + 2)
    url = f"spark://{_HOST}:{ports[0]}"
    addresses = [(_worker_host(number), port) for number, port in enumerate(ports[2:])]
    with ExitStack() as stack:
        log = stack.enter_context(
            _process(
                folder / "master",
                _HOST,
                "org.apache.spark.deploy.master.Master",
                f"--host {_HOST} --port {ports[0]} --webui-port {ports[1]}",
            )
        )
        _await(log, "I have been elected leader", timeout_s)
        (folder / _ADDRESSES).write_text("\n".join(f"{h}:{p}" for h, p in addresses), "utf-8")
        for number, (host, port) in enumerate(addresses):
            place = folder / f"worker-{number}"
            worker_log = stack.enter_context(
                _process(
                    place,
                    host,
                    "org.apache.spark.deploy.worker.Worker",
                    f"{url} --host {host} --port {port} --webui-port 0 --cores {cores} "
                    f"--memory {memory} --work-dir {place / 'work'}",
                )
            )
            _await(worker_log, "Successfully registered with master", timeout_s)
        yield StandaloneCluster(url, folder)


def kill(pid: int) -> None:
    """Ends a process at once: nothing of it can react."""
    os.kill(pid, signal.SIGKILL)


@contextmanager
def _process(folder: Path, host: str, main_class: str, arguments: str) -> Iterator[Path]:
    """A Spark daemon whose log is the yielded file; it is ended with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    home = spark_home()
    variables = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "SPARK_NO_DAEMONIZE": "1"}
    # Jobs of a user's own configuration must not decide what this cluster does.
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), main_class, *arguments.split()],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment | variables,
            cwd=folder,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(log: Path, words: str, timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    while words not in log.read_text("utf-8", "replace"):
        if time.monotonic() > end:
            tail = log.read_text("utf-8", "replace")[-500:]
            raise SparkUnavailableError(
                f"a Spark daemon did not start within {timeout_s:g} s; its log, {log}, ends with: {tail}"
            )
        time.sleep(0.1)


def _worker_host(number: int) -> str:
    """A loopback address of the worker's own, where the system has more than one.

    Spark starts second copies of slow tasks on other hosts alone.
    """
    host = f"127.0.0.{number + 1}"
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return _HOST
    return host


def _processes() -> list[tuple[int, int, str]]:
    """(id, parent's id, command) of all processes, by id."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (line.split(None, 2) for line in listed.stdout.splitlines())
    return sorted((int(row[0]), int(row[1]), row[2]) for row in rows if len(row) == 3)
