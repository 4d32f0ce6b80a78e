"""W6: three stages. Prices are broadcast, purchases are rebalanced, and their amounts are added up by user and by item."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from benchmarks.by_hand import chunks, parts, shuffled, tallied_pairs
from benchmarks.environment import PARALLELISM, environment
from benchmarks.json_lines import empty_folder
from benchmarks.measure import Baseline, Workload
from benchmarks.tally import Tally, added, tally_of
from opchain.datastream import CoFlatMapFunction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opchain import DataStream, StreamExecutionEnvironment

    Amount = tuple[int, int, int]

ITEMS = 500
USERS = 20_000


class Priced(CoFlatMapFunction[Any, int, Any]):
    """Joins (item, price) with purchases to (user, item, price). Purchases wait until all prices are known."""

    def __init__(self) -> None:
        self.prices: dict[int, int] = {}
        self.waiting: list[int] = []

    def flat_map1(self, value: Any) -> Iterable[Any]:
        """Keeps a price."""
        self.prices[value[0]] = value[1]
        if len(self.prices) < ITEMS:
            return ()
        released, self.waiting = self.waiting, []
        return [self._priced(number) for number in released]

    def flat_map2(self, value: int) -> Iterable[Any]:
        """Prices a purchase."""
        if len(self.prices) == ITEMS:
            return (self._priced(value),)
        self.waiting.append(value)
        return ()

    def _priced(self, number: int) -> Any:
        item = number % ITEMS
        return number * 7919 % USERS, item, self.prices[item]


def workloads(session: Any, scale: float) -> list[Workload]:
    """1,000,000 purchases of 500 items by 20,000 users."""
    count = int(1_000_000 * scale)
    context = session.sparkContext

    def ours() -> tuple[int, ...]:
        env = environment()
        folders = [str(empty_folder(f"W6-{table}")) for table in ("users", "items")]
        draw(env, count, *folders)
        env.execute("W6")
        return tally_of(folders[0]) + tally_of(folders[1])

    def by_hand() -> tuple[int, ...]:
        prices = dict(map(_price, range(ITEMS)))
        rebalanced = shuffled(parts(context, lambda part: _dealt(chunks(count, part))))
        priced = rebalanced.mapPartitions(lambda batches: _priced_by_hand(batches, prices))
        return added(shuffled(priced).mapPartitions(_sums_by_hand).collect())

    def idiomatic() -> tuple[int, ...]:
        prices = context.broadcast(
            dict(context.range(0, ITEMS, numSlices=PARALLELISM).map(_price).collect())
        )
        purchases = context.range(0, count, numSlices=PARALLELISM).repartition(PARALLELISM)
        priced = purchases.map(
            lambda x: (x * 7919 % USERS, x % ITEMS, prices.value[x % ITEMS])
        ).persist()
        try:
            return tuple(
                number
                for field in (0, 1)
                for number in added(
                    priced.map(lambda row, field=field: (row[field], row[2]))
                    .partitionBy(PARALLELISM)
                    .mapPartitions(_running)
                    .mapPartitions(tallied_pairs)
                    .collect()
                )
            )
        finally:
            priced.unpersist()

    def loop() -> tuple[int, ...]:
        prices = dict(map(_price, range(ITEMS)))
        users: dict[int, tuple[int, int]] = {}
        items: dict[int, tuple[int, int]] = {}
        users_check = items_check = 0
        for number in range(count):
            user, item = number * 7919 % USERS, number % ITEMS
            price = prices[item]
            bought, total = users.get(user, (0, 0))
            users[user] = bought + 1, total + price
            users_check += bought + 1
            bought, total = items.get(item, (0, 0))
            items[item] = bought + 1, total + price
            items_check += bought + 1
        return count, users_check, count, items_check

    return [
        Workload(
            "W6 three stages",
            count,
            ours,
            (
                Baseline("(a) by hand", by_hand, 0.9),
                Baseline("(b) idiomatic RDD", idiomatic, 1.5),
                Baseline("(c) plain loop", loop),
            ),
        )
    ]


def draw(env: StreamExecutionEnvironment, count: int, users: str, items: str) -> None:
    """The program."""
    prices = env.from_sequence(0, ITEMS - 1).map(_price).broadcast()
    purchases = env.from_sequence(0, count - 1).rebalance()
    priced = prices.connect(purchases).flat_map(Priced())
    _add_up(priced.map(lambda row: (row[0], 1, row[2])), users)
    _add_up(priced.map(lambda row: (row[1], 1, row[2])), items)


def _add_up(amounts: DataStream[Amount], folder: str) -> None:
    """Emits (key, number so far, total price so far) for each (key, 1, price)."""
    totals = amounts.key_by(lambda row: row[0]).reduce(
        lambda a, b: (a[0], a[1] + b[1], a[2] + b[2])
    )
    totals.flat_map(Tally(folder, 1)).print()


def _price(item: int) -> tuple[int, int]:
    return item, item * 31 % 97 + 1


def _dealt(numbers: Iterator[range]) -> Iterator[tuple[int, bytes]]:
    """Deals batches out to all partitions in turn: as even as record by record, and cheaper."""
    for place, chunk in enumerate(numbers):
        yield place % PARALLELISM, pickle.dumps(list(chunk), 5)


def _priced_by_hand(batches: Iterable[bytes], prices: dict[int, int]) -> Iterator[Any]:
    """Batches of (key, price) for the table by user (0) and the table by item (1)."""
    for batch in batches:
        buckets: list[tuple[list[Any], list[Any]]] = [([], []) for _ in range(PARALLELISM)]
        for number in pickle.loads(batch):
            user, item = number * 7919 % USERS, number % ITEMS
            price = prices[item]
            buckets[user % PARALLELISM][0].append((user, price))
            buckets[item % PARALLELISM][1].append((item, price))
        for target, bucket in enumerate(buckets):
            yield target, pickle.dumps(bucket, 5)


def _sums_by_hand(batches: Iterable[bytes]) -> Iterator[tuple[int, ...]]:
    tables: tuple[dict[int, tuple[int, int]], ...] = ({}, {})
    tallies = [[0, 0], [0, 0]]
    for batch in batches:
        for table, tally, pairs in zip(tables, tallies, pickle.loads(batch), strict=True):
            results, check = tally
            for key, price in pairs:
                bought, total = table.get(key, (0, 0))
                table[key] = bought + 1, total + price
                results += 1
                check += bought + 1
            tally[:] = results, check
    yield *tallies[0], *tallies[1]


def _running(pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    table: dict[int, tuple[int, int]] = {}
    for key, price in pairs:
        bought, total = table.get(key, (0, 0))
        table[key] = bought + 1, total + price
        yield key, bought + 1
