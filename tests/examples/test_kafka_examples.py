"""examples/kafka against a real broker and a real database, in process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from example_outputs import EXAMPLES
from postgres_server import USER, postgres_server

from opchain.compiler.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kafka_broker import Kafka
    from postgres_server import Server

ORDERS = [
    ("ann", 20, 0),
    ("bob", 150, 10),
    ("ann", 300, 59),
    ("ann", 5, 61),
]
"""User, price, and second."""


@pytest.fixture
def orders(kafka: Kafka) -> Iterator[Kafka]:
    """A broker with the topic "orders" of the examples."""
    kafka.topic(1, "orders")
    for user, price, second in ORDERS:
        text = json.dumps({"user": user, "price": price})
        kafka.produce("orders", [text], timestamp=1_000 * second + 1)
    yield kafka
    kafka.delete_topic("orders")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with postgres_server() as server:
        yield server


def run(name: str, *arguments: str) -> None:
    program = [str(EXAMPLES / "kafka" / f"{name}.py"), *arguments, "latest"]
    done = CliRunner().invoke(main, ["run", "--local", "--quiet", *program])
    assert done.exit_code == 0, done.output


def written(kafka: Kafka, topic: str) -> list[Any]:
    return list(map(json.loads, kafka.values(topic)))


def test_count_words_writes_counts_to_a_topic(kafka: Kafka, tmp_path: Path) -> None:
    kafka.topic(2, "lines")
    kafka.topic(1, "words")
    kafka.produce("lines", ["to be or", "not to be"])
    run("count_words", kafka.servers, str(tmp_path))
    assert sorted(kafka.values("words")) == ["be 1", "be 2", "not 1", "or 1", "to 1", "to 2"]


def test_filter_json_writes_matching_messages_to_a_topic(orders: Kafka, tmp_path: Path) -> None:
    orders.topic(1, "large-orders")
    run("filter_json", orders.servers, str(tmp_path))
    expected = [{"user": "bob", "price": 150}, {"user": "ann", "price": 300}]
    assert written(orders, "large-orders") == expected


def test_count_windows_counts_orders_by_user_and_minute(orders: Kafka, tmp_path: Path) -> None:
    orders.topic(1, "orders-per-minute")
    run("count_windows", orders.servers, str(tmp_path))
    found = [tuple(item.values()) for item in written(orders, "orders-per-minute")]
    assert sorted(found) == [("ann", 0, 2), ("ann", 1, 1), ("bob", 0, 1)]


def test_enrich_from_postgresql_adds_names_to_orders(
    orders: Kafka, postgres: Server, tmp_path: Path
) -> None:
    orders.topic(1, "named-orders")
    postgres.run(
        "CREATE TABLE users (id text PRIMARY KEY, name text)",
        "INSERT INTO users VALUES ('ann', 'Ann Lee')",
    )
    database = f"host=127.0.0.1 port={postgres.port} user={USER} dbname={USER}"
    run("enrich_from_postgresql", database, orders.servers, str(tmp_path))
    found = [(order["user"], order["name"]) for order in written(orders, "named-orders")]
    assert sorted(found) == sorted(
        (user, "Ann Lee" if user == "ann" else None) for user, _, _ in ORDERS
    )


def test_to_postgresql_keeps_the_last_order_of_each_user(
    orders: Kafka, postgres: Server, tmp_path: Path
) -> None:
    postgres.run("CREATE TABLE last_orders (user_id text PRIMARY KEY, price float)")
    run("to_postgresql", postgres.url, USER, orders.servers, str(tmp_path))
    found = postgres.rows("SELECT * FROM last_orders ORDER BY user_id")
    assert found == [("ann", 5.0), ("bob", 150.0)]


def test_to_parquet_writes_orders_to_files(orders: Kafka, tmp_path: Path) -> None:
    dataset = pytest.importorskip("pyarrow.dataset")
    folder = tmp_path / "orders"
    run("to_parquet", str(folder), orders.servers, str(tmp_path / "checkpoints"))
    files = [path for path in folder.rglob("*") if path.is_file() and "user=" in str(path)]
    table = dataset.dataset(files, format="parquet").to_table()
    found = sorted((row["user"], row["price"]) for row in table.to_pylist())
    assert found == sorted((user, float(price)) for user, price, _ in ORDERS)
    assert {path.parent.name for path in files} == {"user=ann", "user=bob"}
