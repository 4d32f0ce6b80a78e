from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.compiler.graph.partitioner import PartitionerKind
from opchain.compiler.graph.transformation import OperatorTransformation, PartitionTransformation
from opchain.datastream import KeyedStream, StreamExecutionEnvironment
from opchain.datastream.data_stream import DataStreamUtils


def test_records_stay_and_state_is_keyed(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 3).key_by(abs).reduce(max)
    keyed = DataStreamUtils.reinterpret_as_keyed_stream(stream, abs, Types.LONG())
    assert isinstance(keyed, KeyedStream)
    transformation = keyed.transformation
    assert isinstance(transformation, PartitionTransformation)
    assert transformation.partitioner.kind is PartitionerKind.FORWARD
    assert transformation.inputs == (stream.transformation,)
    assert transformation.id == stream.get_id() + 1
    reduced = keyed.reduce(max).transformation
    assert isinstance(reduced, OperatorTransformation)
    assert reduced.key_bys == (keyed.state_key,)
    assert keyed.state_key.key_type == Types.LONG()


def test_what_does_not_fit_is_refused(env: StreamExecutionEnvironment) -> None:
    reinterpret: Any = DataStreamUtils.reinterpret_as_keyed_stream
    with pytest.raises(TypeError, match="the stream is 5"):
        reinterpret(5, abs)
    with pytest.raises(TypeError, match="expected a KeySelector or a callable"):
        reinterpret(env.from_sequence(1, 3), "field")
