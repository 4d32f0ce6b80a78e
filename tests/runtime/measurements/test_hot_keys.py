"""Hot keys of an exchange: exact for few records, approximate for many, in bounded memory."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from opchain.common import Configuration
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.functions import KeyedProcessFunction
from opchain.runtime.measurements.hot_keys import HotKeys, KeySample, merged_hot_keys
from opchain.runtime.state.keys.key_groups import key_group
from opchain.runtime.state.keys.key_router import KeyRouter

ROUTER = KeyRouter(128, 4)
BATCH = 1_000


def sampled(keys: list[Any], batch: int = BATCH, **settings: Any) -> HotKeys:
    sample = KeySample(ROUTER, **settings)
    for begin in range(0, len(keys), batch):
        sample.add(keys[begin : begin + batch])
    sample.fold()
    return sample.hottest(0)


def skewed(count: int) -> list[str]:
    draw = random.Random(7)
    return [f"word {int(draw.paretovariate(0.8))}" for _ in range(count)]


def test_keys_of_few_records_are_counted_exactly() -> None:
    hot = sampled(["a", "b", "a", 7, "a", "b"], 2)
    assert hot.records == 6
    assert hot.keys == (
        ("'a'", key_group("a", 128), 3),
        ("'b'", key_group("b", 128), 2),
        ("7", key_group(7, 128), 1),
    )
    assert dict(hot.groups) == {
        key_group("a", 128): 3,
        key_group("b", 128): 2,
        key_group(7, 128): 1,
    }


@pytest.mark.parametrize("batch", [1, 10, 1_000, 8_192])
def test_counts_of_many_records_are_close_and_deterministic(batch: int) -> None:
    keys = skewed(200_000)
    hot = sampled(keys, batch)
    assert hot == sampled(keys, batch)
    right = Counter(keys)
    for text, _, count in hot.keys[:3]:
        assert count == pytest.approx(right[text.strip("'")], rel=0.35)
    assert [text for text, _, _ in hot.keys[:2]] == ["'word 1'", "'word 2'"]
    assert hot.groups[0][0] == key_group("word 1", 128)


def test_a_hot_key_among_a_million_keys_is_found_in_bounded_memory() -> None:
    keys = [str(number) if number % 20 else "hot" for number in range(1_000_000)]
    sample = KeySample(ROUTER)
    for begin in range(0, len(keys), BATCH):
        sample.add(keys[begin : begin + BATCH])
        assert len(sample._keys) <= 512 + 256
    sample.fold()
    (key,) = sample.hottest(0).keys
    assert key[0] == "'hot'"
    assert key[2] == pytest.approx(50_000, rel=0.35)


def test_keys_that_alternate_have_even_counts() -> None:
    """A sample of every n-th record would see only one of n alternating keys."""
    for different in (17, 251):
        hot = sampled([number % different for number in range(500_000)])
        assert all(count < 500_000 / different + 500_000 * 0.02 for _, _, count in hot.keys)


class Plain:
    """Has an address in its repr."""


@dataclass
class Failing:
    value: int

    def __repr__(self) -> str:
        raise ValueError("no repr")


class AnyGroup:
    def key_groups_of(self, keys: list[Any]) -> list[int]:
        return [0] * len(keys)


def test_keys_need_neither_hash_nor_repr() -> None:
    sample = KeySample(AnyGroup())  # type: ignore[arg-type]  # keys of any kind have a group
    sample.add([Plain(), Plain(), Failing(1), [1], [1], {"a": 1}, "x" * 200])
    sample.fold()
    texts = {text: count for text, _, count in sample.hottest(0).keys}
    assert texts["Plain"] == 2
    assert texts["[1]"] == 2
    assert texts["<Failing whose repr raises ValueError>"] == 1
    assert max(map(len, texts)) == 80


def test_counts_of_several_tasks_and_epochs_are_added_by_target() -> None:
    one = HotKeys(4, 10, (("'a'", 1, 6), ("'b'", 2, 4)), ((1, 6), (2, 4)))
    other = HotKeys(4, 7, (("'b'", 2, 7),), ((2, 7),))
    elsewhere = HotKeys(2, 1, (("'a'", 1, 1),), ((1, 1),))
    assert merged_hot_keys([one, other, elsewhere]) == (
        elsewhere,
        HotKeys(4, 17, (("'b'", 2, 11), ("'a'", 1, 6)), ((2, 11), (1, 6))),
    )


class First(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_job_metrics_have_the_hot_keys_of_each_keyed_vertex(mode: str) -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    configuration.set_string("execution.runtime-mode", mode)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    words = ["hot"] * 30 + ["cold"] * 3 + ["warm"] * 7
    (
        env.from_collection(words)
        .map(lambda word: (word, 1))
        .key_by(lambda pair: pair[0])
        .process(First())
        .name("first")
        .print()
    )
    metrics = env.execute("hot").metrics
    source, first = metrics.vertices[0], metrics.vertices[-1]
    assert source.hot_keys is None
    assert first.hot_keys is not None
    assert [(text, count) for text, _, count in first.hot_keys.keys] == [
        ("'hot'", 30),
        ("'warm'", 7),
        ("'cold'", 3),
    ]
    assert first.hot_keys.records == 40
    assert metrics.as_dict()["vertices"][-1]["hot_keys"]["keys"][0][0] == "'hot'"
