"""`opchain dev kafka` starts a broker that another client reaches, and leaves nothing behind."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from opchain.compiler.cli import main
from opchain.runtime.testing.kafka_broker import KAFKA
from opchain.runtime.testing.ports import free_ports

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_dev_kafka_starts_a_broker_with_topics_and_stops_it_at_exit() -> None:
    admin = pytest.importorskip(
        "confluent_kafka.admin", reason="needs pip install 'opchain[kafka]'"
    )
    missing = KAFKA.missing()
    if missing is not None:
        pytest.skip(missing)
    [port] = free_ports(1)
    command = [sys.executable, "-m", "opchain", "dev", "kafka", "--port", str(port)]
    with subprocess.Popen(
        [*command, "--topic", "lines:3"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert f"listens on 127.0.0.1:{port}" in line
        found = admin.AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(
            timeout=30
        )
        assert len(found.topics["lines"].partitions) == 3
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    with socket.socket() as gone:
        assert gone.connect_ex(("127.0.0.1", port)) != 0


ENDED = """
import os, sys
from opchain.runtime.testing.kafka_broker import run_at_the_end
with run_at_the_end("/bin/sh", "-c", 'echo stopped > "$0"', sys.argv[1]):
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), 9)
    elif sys.argv[2] == "exec":
        os.execv("/bin/true", ["true"])
"""


@pytest.mark.parametrize("how", ["return", "kill", "exec"])
def test_dev_servers_are_stopped_even_if_the_command_is_killed(how: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        process = subprocess.Popen([sys.executable, "-c", ENDED, str(pipe), how])
        assert select.select([reader], [], [], 60)[0], "nothing was run at the end"
        assert os.read(reader, 100) == b"stopped\n"
        assert process.wait(60) == (-signal.SIGKILL if how == "kill" else 0)
    finally:
        os.close(reader)


def test_dev_kafka_refuses_a_malformed_topic() -> None:
    done = CliRunner().invoke(main, ["dev", "kafka", "--topic", "lines:many"])
    assert done.exit_code == 2
    assert "'lines:many' is not a topic" in done.output
