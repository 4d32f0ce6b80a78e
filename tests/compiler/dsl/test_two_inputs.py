from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.common import Types
from opchain.compiler.dsl.connected_streams import with_two_inputs
from opchain.compiler.graph.transformation import OperatorTransformation
from opchain.runtime.program.operator_specs import CoMapSpec

if TYPE_CHECKING:
    from opchain.datastream import StreamExecutionEnvironment


def test_each_input_brings_its_own_key(env: StreamExecutionEnvironment) -> None:
    keyed, plain = env.from_sequence(1, 3).key_by(abs), env.from_sequence(4, 6)
    stream = with_two_inputs(CoMapSpec(None), keyed, plain, Types.LONG())
    added = stream.transformation
    assert isinstance(added, OperatorTransformation)
    assert env.get_transformations() == [added]
    assert (added.name, added.inputs) == ("Co-Map", (keyed.transformation, plain.transformation))
    assert added.key_bys == (keyed.state_key, None)
    assert (added.parallelism, added.output_type) == (4, Types.LONG())


def test_what_is_no_type_is_refused(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 3)
    with pytest.raises(TypeError, match="it takes a TypeInformation"):
        with_two_inputs(CoMapSpec(None), stream, stream, str)  # type: ignore[arg-type]
