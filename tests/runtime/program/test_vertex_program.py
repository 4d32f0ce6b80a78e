from __future__ import annotations

import pickle

import pytest
from forms import job_of
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.errors import InternalError
from opchain.runtime.program.vertex_program import (
    InputProgram,
    pointwise_consumers,
    pointwise_producers,
)

sizes = st.integers(1, 40)


@pytest.mark.parametrize(
    ("producers", "consumers", "expected"),
    [
        (2, 4, [(0, 1), (0, 1), (1, 2), (1, 2)]),
        (4, 2, [(0, 2), (2, 4)]),
        (3, 2, [(0, 1), (1, 3)]),
        (2, 3, [(0, 1), (0, 1), (1, 2)]),
        (3, 3, [(0, 1), (1, 2), (2, 3)]),
        (1, 3, [(0, 1)] * 3),
        (3, 1, [(0, 3)]),
    ],
)
def test_pointwise_producers_are_a_range_as_in_flink(
    producers: int, consumers: int, expected: list[tuple[int, int]]
) -> None:
    """The numbers are those of VertexInputInfoComputationUtils in Flink."""
    assert [
        pointwise_producers(consumer, consumers, producers) for consumer in range(consumers)
    ] == expected


@given(producers=sizes, consumers=sizes)
def test_producers_and_consumers_of_a_pointwise_edge_agree(producers: int, consumers: int) -> None:
    read = {
        (producer, consumer)
        for consumer in range(consumers)
        for producer in range(*pointwise_producers(consumer, consumers, producers))
    }
    written = {
        (producer, consumer)
        for producer in range(producers)
        for consumer in range(*pointwise_consumers(producer, producers, consumers))
    }
    assert read == written
    assert {producer for producer, _ in read} == set(range(producers))
    assert {consumer for _, consumer in read} == set(range(consumers))
    assert len(read) == max(producers, consumers)


@pytest.mark.parametrize(("is_pointwise", "channels"), [(True, [7, 8]), (False, [5, 6, 7, 8])])
def test_an_input_has_the_channels_of_its_producers(
    is_pointwise: bool, channels: list[int]
) -> None:
    edge = InputProgram(0, 5, 4, is_pointwise, False, "a -> b")
    assert list(edge.channels_of(1, 2)) == channels


def test_a_task_number_is_resolved_to_vertex_and_subtask() -> None:
    job = job_of(lambda env: env.from_sequence(1, 9).rebalance().map(int).print(), parallelism=3)
    found = [(job.vertex_of(task)[0].name, job.vertex_of(task)[1]) for task in range(6)]
    assert [subtask for _, subtask in found] == [0, 1, 2, 0, 1, 2]
    assert len({name for name, _ in found}) == 2
    with pytest.raises(InternalError):
        job.vertex_of(6)


def test_programs_can_be_pickled_without_cloudpickle() -> None:
    job = job_of(lambda env: env.from_sequence(1, 9).map(str.upper).rebalance().map(str))
    travelled = pickle.loads(pickle.dumps(job))
    assert travelled.stages == job.stages
    assert [vertex.source for vertex in travelled.vertices] == [v.source for v in job.vertices]
    assert travelled.vertices[0].operators[1] == job.vertices[0].operators[1]
