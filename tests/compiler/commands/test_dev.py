"""`opchain dev kafka` starts a broker that another client reaches, and leaves nothing behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

from opchain.compiler.cli import main
from opchain.runtime.testing.kafka_broker import kafka_is_installable


def test_the_broker_has_the_topics_and_ends_with_the_command() -> None:
    admin = pytest.importorskip(
        "confluent_kafka.admin", reason="needs pip install 'opchain[kafka]'"
    )
    missing = kafka_is_installable()
    if missing is not None:
        pytest.skip(missing)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
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


def test_what_is_no_topic_is_refused() -> None:
    done = CliRunner().invoke(main, ["dev", "kafka", "--topic", "lines:many"])
    assert done.exit_code == 2
    assert "'lines:many' is no topic" in done.output
