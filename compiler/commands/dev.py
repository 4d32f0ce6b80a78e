"""`opchain dev`: servers on this machine, for trying out programs."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import click

from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.command_line.output import examples
from opchain.runtime.errors import StreamError, imported
from opchain.runtime.testing.kafka_broker import VERSION, KafkaBrokers, kafka_brokers

KAFKA_PORT = 9092


@click.group(
    short_help="Starts servers on this machine, for experiments.",
    epilog=examples("opchain dev kafka", "opchain dev kafka --topic orders:4 --port 19092"),
)
def dev() -> None:
    """Starts servers on this machine, for experiments. Ctrl-C stops them and removes their data."""


@dev.command(
    short_help="Starts a Kafka broker; downloads it with Maven the first time.",
    epilog=examples("opchain dev kafka", "opchain dev kafka --topic orders:4 --port 19092"),
)
@click.option("--port", default=KAFKA_PORT, show_default=True, help="The port on which it listens.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME[:PARTITIONS]",
    help="A topic to create; may be repeated.",
)
def kafka(port: int, topics: tuple[str, ...]) -> None:
    """Starts a Kafka broker for programs on this machine, until Ctrl-C.

    Needs Java 17 or later, and Maven the first time, which downloads Apache Kafka to ~/.cache/opchain.
    """
    wanted = [_topic(text) for text in topics]
    try:
        with (
            tempfile.TemporaryDirectory(prefix="opchain-kafka-") as folder,
            kafka_brokers(Path(folder), port=port) as brokers,
        ):
            for name, partitions in wanted:
                _make_topic(brokers, name, partitions)
            click.echo(
                f"Kafka {VERSION} listens on {brokers.bootstrap_servers}; Ctrl-C stops it and removes its data."
            )
            ends = {signal.SIGINT, signal.SIGTERM}
            signal.pthread_sigmask(signal.SIG_BLOCK, ends)
            signal.sigwait(ends)
    except StreamError as error:
        raise CommandError(str(error)) from error


def _topic(text: str) -> tuple[str, int]:
    name, _, partitions = text.partition(":")
    if not name or not (partitions or "1").isdecimal():
        raise click.BadParameter(
            f"{text!r} is not a topic; give a name, or a name and a number of partitions: lines:4"
        )
    return name, int(partitions or 1)


def _make_topic(brokers: KafkaBrokers, name: str, partitions: int) -> None:
    admin = imported("confluent_kafka.admin", "kafka", "opchain dev kafka")
    client = admin.AdminClient({"bootstrap.servers": brokers.bootstrap_servers})
    client.create_topics([admin.NewTopic(name, num_partitions=partitions)])[name].result()


COMMANDS = (dev,)
