from __future__ import annotations

import sys
from typing import Any

import pytest

from opchain.compiler.graph.partitioner import ExchangeMode, KeyBy, Partitioner, PartitionerKind
from opchain.compiler.graph.transformation import (
    MAX_PARALLELISM_LIMIT,
    CallSite,
    ChainingStrategy,
    OperatorTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    SinkTransformation,
    UnionTransformation,
    user_call_site,
)
from opchain.datastream import OutputTag, StreamExecutionEnvironment
from opchain.runtime.connectors.simple_sinks import DiscardingSink
from opchain.runtime.errors import GraphError
from opchain.runtime.program.operator_specs import MapSpec, SinkSpec

HERE = CallSite("clicks.py", 14)


def operator(*inputs: Any, **more: Any) -> OperatorTransformation:
    return OperatorTransformation(
        1, "parse", inputs, spec=MapSpec(len), parallelism=4, call_site=HERE, **more
    )


def test_a_new_operator_has_flinks_defaults() -> None:
    made = operator()
    assert (made.parallelism, made.parallelism_configured, made.max_parallelism) == (4, False, -1)
    assert made.chaining_strategy is ChainingStrategy.ALWAYS
    assert (made.uid, made.uid_hash, made.slot_sharing_group) == (None, None, None)
    assert (made.description, made.buffer_timeout) == (None, None)
    assert repr(made) == "<OperatorTransformation 1 'parse' (clicks.py:14)>"


@pytest.mark.parametrize(
    ("parallelism", "configured", "expected"),
    [(3, True, (3, True)), (-1, True, (-1, False)), (3, False, (3, False))],
)
def test_parallelism_is_configured_unless_it_is_left_to_the_environment(
    parallelism: int, configured: bool, expected: tuple[int, bool]
) -> None:
    made = operator()
    made.set_parallelism(parallelism, configured=configured)
    assert (made.parallelism, made.parallelism_configured) == expected


@pytest.mark.parametrize("parallelism", [0, -2, -100])
def test_a_parallelism_below_one_is_refused(parallelism: int) -> None:
    with pytest.raises(
        GraphError, match=rf"'parse' \(clicks.py:14\): parallelism is {parallelism};"
    ):
        operator().set_parallelism(parallelism)


@pytest.mark.parametrize("value", ["2", 2.0, None, True])
@pytest.mark.parametrize("method", ["set_parallelism", "set_max_parallelism"])
def test_parallelism_must_be_an_int(method: str, value: Any) -> None:
    with pytest.raises(TypeError, match=r"'parse' \(clicks.py:14\): .* must be an int"):
        getattr(operator(), method)(value)


@pytest.mark.parametrize("max_parallelism", [1, 128, MAX_PARALLELISM_LIMIT])
def test_max_parallelism_has_bounds(max_parallelism: int) -> None:
    made = operator()
    made.set_max_parallelism(max_parallelism)
    assert made.max_parallelism == max_parallelism


@pytest.mark.parametrize("max_parallelism", [0, -1, MAX_PARALLELISM_LIMIT + 1])
def test_a_max_parallelism_out_of_bounds_is_refused(max_parallelism: int) -> None:
    with pytest.raises(GraphError, match=f"max parallelism is {max_parallelism}; .*1 and 32768"):
        operator().set_max_parallelism(max_parallelism)


def test_force_non_parallel_refuses_a_parallelism_above_1() -> None:
    made = operator()
    made.force_non_parallel()
    made.set_parallelism(1)
    made.set_max_parallelism(1)
    assert (made.parallelism, made.max_parallelism, made.parallelism_configured) == (1, 1, True)
    with pytest.raises(
        GraphError, match="parallelism is set to 2, but this operator is not parallel"
    ):
        made.set_parallelism(2)
    with pytest.raises(GraphError, match="its max parallelism is 1"):
        made.set_max_parallelism(2)


def test_a_uid_hash_is_32_hexadecimal_digits() -> None:
    made = operator()
    made.set_uid_hash("60d494baebefa263282d484f779f582F")
    assert made.uid_hash == "60d494baebefa263282d484f779f582F"
    for wrong in ("60d4", "g" * 32, 5, ""):
        with pytest.raises(GraphError, match="must be 32 hexadecimal digits"):
            made.set_uid_hash(wrong)  # type: ignore[arg-type]


def test_a_sink_takes_no_uid_hash() -> None:
    sink = SinkTransformation(
        2, "out", operator(), spec=SinkSpec(DiscardingSink()), parallelism=1, call_site=HERE
    )
    with pytest.raises(GraphError, match=r"'out' .* becomes several operators; use uid\(\)"):
        sink.set_uid_hash("0" * 32)


def test_an_operator_has_a_key_or_none_per_input() -> None:
    key = KeyBy(len)
    two = operator(operator(), operator())
    assert (two.key_bys, two.is_keyed) == ((None, None), False)
    keyed = operator(operator(), operator(), key_bys=(None, key))
    assert (keyed.key_bys, keyed.is_keyed) == ((None, key), True)


def test_virtual_transformations_have_the_parallelism_of_their_input() -> None:
    made = operator(parallelism_configured=True)
    partitioner = Partitioner(PartitionerKind.REBALANCE)
    virtual = [
        PartitionTransformation(2, made, partitioner, ExchangeMode.UNDEFINED, call_site=HERE),
        SideOutputTransformation(3, made, OutputTag("side"), call_site=HERE),
    ]
    for one in virtual:
        assert (one.parallelism, one.parallelism_configured, one.inputs) == (4, True, (made,))
    union = UnionTransformation(4, "Union", [made, *virtual], parallelism=4, call_site=HERE)
    assert union.inputs == (made, *virtual)


def line() -> int:
    """The line that calls this."""
    return sys._getframe(1).f_lineno


def test_a_call_site_is_shown_as_file_and_line() -> None:
    assert str(CallSite("/somewhere/jobs/clicks.py", 14)) == "clicks.py:14"


def test_the_call_site_is_the_users_line() -> None:
    assert user_call_site() == CallSite(__file__, line())


@pytest.mark.parametrize(
    "draw",
    [
        lambda stream: stream.map(str),
        lambda stream: stream.key_by(str).reduce(max),
        lambda stream: stream.key_by(str).sum(),
        lambda stream: stream.print(),
        lambda stream: stream.union(stream),
        lambda stream: stream.rebalance(),
    ],
)
def test_the_call_site_skips_frames_of_the_dsl(draw: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    drawn = draw(env.from_sequence(1, 2))
    found = getattr(drawn, "transformation", None) or env.get_transformations()[-1]
    assert found.call_site == CallSite(__file__, draw.__code__.co_firstlineno)


def test_the_call_site_of_a_call_over_several_lines_is_one_of_them() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    first = line() + 2
    stream = (
        env.from_sequence(1, 2)
        .map(str)
    )  # fmt: skip
    assert first <= stream.transformation.call_site.line <= first + 2
