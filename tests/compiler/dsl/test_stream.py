from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.common import Types
from opchain.runtime.program.operator_specs import MapSpec

if TYPE_CHECKING:
    from opchain.datastream import StreamExecutionEnvironment


def test_a_stream_knows_its_environment_id_and_parallelism(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 3).map(abs).set_parallelism(2)
    assert stream.get_execution_environment() is env
    assert stream.get_id() == 2
    assert stream.get_parallelism() == 2
    assert stream.get_execution_config().get_parallelism() == 4
    assert stream.state_key is None


def test_transform_adds_an_operator_with_its_line(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 3)
    mapped = stream.transform(MapSpec(abs), Types.LONG(), name="absolute", parallelism=3)
    transformation = mapped.transformation
    assert env.get_transformations() == [transformation]
    assert transformation.inputs == (stream.transformation,)
    assert (transformation.name, transformation.parallelism) == ("absolute", 3)
    assert not transformation.parallelism_configured
    assert str(transformation.call_site).startswith("test_stream.py:")
    assert mapped.get_type() == Types.LONG()


def test_the_parallelism_is_that_of_the_environment_at_the_call(
    env: StreamExecutionEnvironment,
) -> None:
    before = env.from_sequence(1, 3).map(abs)
    env.set_parallelism(7)
    after = before.map(abs)
    assert (before.get_parallelism(), after.get_parallelism()) == (4, 7)


def test_a_stream_prints_its_operator_and_line(env: StreamExecutionEnvironment) -> None:
    assert "<DataStream of 'Map' (test_stream.py:" in repr(env.from_sequence(1, 3).map(abs))
