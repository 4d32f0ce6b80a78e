"""Random chains have the same results interpreted, generated, and generated without inlining."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import Configuration, Row, WatermarkStrategy
from opchain.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment
from opchain.runtime.task.input import task_input

if TYPE_CHECKING:
    from collections.abc import Iterator

LATE = OutputTag("late")


@pytest.fixture(autouse=True, scope="module")
def _whole_batches() -> Iterator[None]:
    """No batch is divided because the machine is slow: functions of batches see how large theirs is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_input, "LONGEST_TURN_S", math.inf)
        yield


class Route(ProcessFunction[int, int]):
    """Multiples of three leave by the side, with their timestamp where there is one."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        if value % 3 == 0:
            yield LATE, value
        if value % 5 != 0:
            yield value + (ctx.timestamp() or 0) % 2


class Reused:
    """Returns the same list repeatedly, so outputs must copy it."""

    def __init__(self) -> None:
        self.row = [0, 0]

    def __call__(self, value: int) -> list[int]:
        self.row[0] = value
        self.row[1] += 1
        return self.row


def grown(row: list[int]) -> int:
    row.append(1)
    return row[0] + len(row)


def halves(batch: list[int]) -> Any:
    yield batch[: len(batch) // 2]
    yield [x + 1 for x in batch[len(batch) // 2 :]]


class Pair(NamedTuple):
    key: int
    number: int


@dataclass
class Spot:
    key: int
    number: int


def spread(value: int) -> Any:
    yield from range(value % 4)


OPERATORS: dict[str, Any] = {
    "map": lambda stream: stream.map(lambda x: x * 7 % 1009),
    "opaque map": lambda stream: stream.map(int),
    "filter": lambda stream: stream.filter(lambda x: x % 4 != 1),
    "flat map": lambda stream: stream.flat_map(lambda x: [x, x + 1]),
    "generator": lambda stream: stream.flat_map(spread),
    "process": lambda stream: stream.process(Route()),
    "batches": lambda stream: stream.map_batches(lambda batch: [len(batch), *batch]),
    "yielded batches": lambda stream: stream.map_batches(halves),
    "one to one": lambda stream: stream.map_batches(
        lambda batch: [x * 3 % 1009 for x in batch], one_to_one=True
    ),
    "reused": lambda stream: stream.map(Reused()).map(lambda row: row[0] + row[1]),
    "one twice": lambda stream: (
        stream.map(lambda x: [x]).flat_map(lambda row: [row, row]).map(grown)
    ),
    "rebalance": lambda stream: stream.rebalance(),
    "keyed": lambda stream: stream.key_by(lambda x: x % 5).reduce(lambda a, b: (a + b) % 10007),
    "rows": lambda stream: (
        stream.map(lambda x: Row(x % 5, x))
        .key_by(lambda row: row[0])
        .reduce(lambda a, b: Row(a[0], a[1] + b[1]))
        .map(lambda row: row[1] % 10007)
    ),
    "named tuples": lambda stream: (
        stream.map(lambda x: Pair(x % 3, x))
        .filter(lambda pair: pair.number % 7 != 1)
        .key_by(lambda pair: pair.key)
        .map(lambda pair: pair.key + pair[1] + len(pair))
    ),
    "dataclasses": lambda stream: (
        stream.map(lambda x: Spot(x % 3, x))
        .filter(lambda spot: spot.number % 7 != 2)
        .key_by(lambda spot: spot.key)
        .reduce(lambda a, b: Spot(a.key, (a.number + b.number) % 10007))
        .map(lambda spot: spot.key + spot.number)
    ),
    "comprehension": lambda stream: stream.flat_map(lambda x: [(y, x) for y in range(x % 3)]).map(
        lambda pair: pair[0] + pair[1]
    ),
    "dicts": lambda stream: (
        stream.map(lambda x: {"key": x % 3, "number": x})
        .rebalance()
        .flat_map(lambda d: [d["key"], d.get("number"), d.get("none", 1)])
    ),
    "timestamps": lambda stream: stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda value, _: value
        )
    ),
}


def sees_the_same_batches(names: list[str]) -> bool:
    """Whether functions of batches come before any exchange: after one, the forms divide records into other batches."""
    exchanging = ("keyed", "rebalance", "rows", "named tuples", "dataclasses", "dicts")
    exchanges = [place for place, name in enumerate(names) if name in exchanging]
    after = names[exchanges[0] :] if exchanges else []
    return not {"batches", "yielded batches"} & {*after}


chains = st.lists(st.sampled_from(sorted(OPERATORS)), min_size=1, max_size=9).filter(
    sees_the_same_batches
)


def run(names: list[str], fork: int, mode: str, parallelism: int = 2) -> tuple[Any, ...]:
    """The records of all branches, and what each operator counted."""
    env = StreamExecutionEnvironment.get_execution_environment()
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    configuration.set_string("opchain.batch-size", "7")
    configuration.set_string("opchain.codegen.enabled", str(mode != "interpreted"))
    configuration.set_string("opchain.codegen.inline", str(mode == "inlined"))
    env.configure(configuration)
    env.set_parallelism(parallelism)
    stream = env.from_collection(list(range(40)))
    branches = []
    for position, name in enumerate(names):
        if position == fork:
            branches.append(stream)
        stream = OPERATORS[name](stream)
        if name == "process":
            branches.append(stream.get_side_output(LATE))
    branches.append(stream)
    iterators = [branch.map(lambda x: (x,)).collect_async() for branch in branches]
    client = env.execute_async()
    client.get_job_execution_result().result()
    return tuple(sorted(iterator) for iterator in iterators)


@settings(max_examples=60, deadline=None)
@given(names=chains, fork=st.integers(0, 8))
def test_random_chains_have_the_same_results_in_each_form(names: list[str], fork: int) -> None:
    interpreted = run(names, fork, "interpreted")
    assert run(names, fork, "generated") == interpreted
    assert run(names, fork, "inlined") == interpreted


@pytest.mark.parametrize("mode", ["interpreted", "generated", "inlined"])
def test_a_chain_of_any_depth_runs(mode: str) -> None:
    (records,) = run(
        ["flat map", "filter", "map"] * 3 + ["generator"] * 8 + ["map"] * 300, -1, mode
    )
    expected = list(range(40))
    for _ in range(3):
        expected = [y * 7 % 1009 for x in expected for y in (x, x + 1) if y % 4 != 1]
    for _ in range(8):
        expected = [y for x in expected for y in range(x % 4)]
    for _ in range(300):
        expected = [x * 7 % 1009 for x in expected]
    assert records == sorted((x,) for x in expected)
