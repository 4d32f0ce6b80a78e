"""Programs of a given number of vertices, drawn at random with the public DSL, the same for a seed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.functions import CoMapFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.datastream import DataStream

NAMES = (
    "parse",
    "clean",
    "enrich with the latest price",
    "is_valid",
    "score",
    "to_row",
    "Doppel\u00e4dler",
    "x",
)


class Either(CoMapFunction[int, int, int]):
    def map1(self, value: int) -> int:
        return value

    def map2(self, value: int) -> int:
        return value


def random_plan(vertices: int, seed: int) -> StreamExecutionEnvironment:
    """An environment whose job has exactly so many vertices; a tenth of them are sources."""
    chosen = random.Random(seed)
    env = StreamExecutionEnvironment.get_execution_environment()
    streams: list[DataStream[Any]] = []
    leaves: dict[int, tuple[DataStream[Any], int]] = {}
    for number in range(vertices):
        parallelism = chosen.choice((1, 2, 2, 2, 4))
        if number < max(1, vertices // 10):
            stream = env.from_sequence(1, 10).name(f"events {number}")
        else:
            stream = _behind(streams, leaves, number, chosen)
        stream = stream.set_parallelism(parallelism)
        for _ in range(chosen.choice((0, 0, 1, 2, 4))):
            name = chosen.choice(NAMES)
            stream = stream.map(lambda n: n).name(name).set_parallelism(parallelism)
        streams.append(stream)
        leaves[number] = stream, parallelism
    for leaf, parallelism in leaves.values():
        leaf.print().set_parallelism(parallelism)
    return env


def _behind(
    streams: list[DataStream[Any]],
    leaves: dict[int, tuple[DataStream[Any], int]],
    number: int,
    chosen: random.Random,
) -> DataStream[Any]:
    """A stream that begins a vertex, behind one or two of the latest streams."""
    latest = range(max(0, number - 25), number)
    parents = chosen.sample(latest, k=min(number, chosen.choice((1, 1, 1, 2))))
    for parent in parents:
        leaves.pop(parent, None)
    inputs = [streams[parent] for parent in parents]
    if len(inputs) > 1 and chosen.random() < 0.5:
        two = inputs[0].rebalance().connect(inputs[1].broadcast())
        return two.map(Either()).name(f"both {number}")
    united = inputs[0].union(*inputs[1:])
    return chosen.choice(EXCHANGES)(united).name(f"{chosen.choice(NAMES)} {number}")


EXCHANGES: tuple[Callable[[DataStream[Any]], DataStream[Any]], ...] = (
    lambda stream: stream.rebalance().map(lambda n: n),
    lambda stream: stream.broadcast().filter(bool),
    lambda stream: stream.key_by(by_seven).reduce(lambda a, b: a + b),
    lambda stream: stream.map(lambda n: n).start_new_chain(),
)


def by_seven(n: int) -> int:
    return n % 7
