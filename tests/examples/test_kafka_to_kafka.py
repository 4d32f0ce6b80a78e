"""examples/kafka_to_kafka.py against a real broker, in process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.testing import CliRunner
from example_outputs import EXAMPLES

from opchain.compiler.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_broker import Kafka


def test_words_are_counted_from_one_topic_to_the_other(kafka: Kafka, tmp_path: Path) -> None:
    kafka.topic(2, "lines")
    kafka.topic(1, "words")
    kafka.produce("lines", ["to be or", "not to be"])
    program = [str(EXAMPLES / "kafka_to_kafka.py"), kafka.servers, str(tmp_path), "latest"]
    done = CliRunner().invoke(main, ["run", "--local", "--quiet", *program])
    assert done.exit_code == 0, done.output
    assert sorted(kafka.values("words")) == ["be 1", "be 2", "not 1", "or 1", "to 1", "to 2"]
