from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.compiler.dsl.argument_checks import declared_type, type_of
from opchain.datastream import OutputTag, StreamExecutionEnvironment
from opchain.datastream.connectors import DiscardingSink


def test_type_of_returns_a_type_or_none_unchanged() -> None:
    assert type_of(Types.STRING(), "map") == Types.STRING()
    assert type_of(None, "map") is None


def test_type_of_turns_a_list_of_types_into_a_row_type() -> None:
    fields = [Types.STRING(), Types.INT()]
    assert type_of(fields, "map") == Types.ROW(fields)


@pytest.mark.parametrize("declared", [str, "STRING", [str], (Types.INT(),)])
def test_type_of_refuses_objects_that_are_not_types(declared: Any) -> None:
    with pytest.raises(TypeError, match=r"map\(\) \(test_declared_types.py:.*a TypeInformation"):
        type_of(declared, "map")


def test_operations_that_change_no_record_keep_the_declared_type(
    env: StreamExecutionEnvironment,
) -> None:
    stream = env.from_collection(["a"], Types.STRING())
    kept = stream.filter(bool).rebalance().union(stream).key_by(len)
    assert declared_type(kept.transformation) == Types.STRING()
    assert stream.map(len).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert declared_type(stream.map(len).transformation) is None


def test_a_side_output_has_the_type_of_its_tag(env: StreamExecutionEnvironment) -> None:
    side = env.from_collection([1]).map(abs).get_side_output(OutputTag("late", Types.LONG()))
    assert declared_type(side.transformation) == Types.LONG()


def test_a_sink_has_no_type(env: StreamExecutionEnvironment) -> None:
    sink = env.from_collection(["a"], Types.STRING()).sink_to(DiscardingSink())
    assert declared_type(sink.transformation) is None
