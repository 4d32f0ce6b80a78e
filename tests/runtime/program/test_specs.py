"""Properties of operator specs that the compiler uses; tests/conformance tests the names of Flink."""

from __future__ import annotations

import inspect
from copy import copy
from typing import Any

import pytest

from opchain.common import WatermarkStrategy
from opchain.datastream.functions import KeyedProcessFunction
from opchain.runtime.connectors.collection import CollectionSource
from opchain.runtime.connectors.simple_sinks import DiscardingSink
from opchain.runtime.program import operator_specs as specs

KINDS = [
    kind
    for name, kind in inspect.getmembers(specs, inspect.isclass)
    if issubclass(kind, specs.OperatorSpec) and not name.startswith("_")
]
STRATEGY: Any = WatermarkStrategy.for_monotonous_timestamps()
STAMPING = copy(STRATEGY).with_timestamp_assigner(lambda value, _: value)


class Keyed(KeyedProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        return None


class Timed(Keyed):
    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        return None


class TimedSource(CollectionSource):
    has_timestamps = True


class Tolerant(DiscardingSink):
    reads_timestamps = False
    changes_records = False


def test_kinds_of_specs_have_distinct_names() -> None:
    names = [kind.kind for kind in KINDS]
    assert len(names) == len(set(names))
    assert all(name.isidentifier() for name in names), "they become names in generated code"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_specs_are_immutable_and_compared_by_value(kind: type[specs.OperatorSpec]) -> None:
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert not hasattr(kind, "__dict__") or "__dict__" not in dir(kind.__new__(kind))


@pytest.mark.parametrize(
    ("spec", "makes", "reads", "brings"),
    [
        (specs.MapSpec(len), False, False, False),
        (specs.ReduceSpec(max), False, False, False),
        (specs.ProcessSpec(Keyed()), False, True, False),
        (specs.KeyedProcessSpec(Keyed()), False, True, False),
        (specs.KeyedProcessSpec(Timed()), True, True, False),
        (specs.KeyedCoProcessSpec(Timed()), True, True, False),
        (specs.KeyedBroadcastProcessSpec(Timed()), True, True, False),
        (specs.TimestampsWatermarksSpec(STRATEGY), False, True, False),
        (specs.TimestampsWatermarksSpec(STAMPING), True, True, False),
        (specs.SourceSpec(CollectionSource([1])), False, True, False),
        (specs.SourceSpec(CollectionSource([1]), STRATEGY), False, True, False),
        (specs.SourceSpec(CollectionSource([1]), STAMPING), True, True, False),
        (specs.SourceSpec(TimedSource([1]), STRATEGY), True, True, True),
        (specs.InputFormatSourceSpec(CollectionSource([1])), False, True, False),
        (specs.LegacySourceSpec(Keyed()), True, True, True),
        (specs.SinkWriterSpec(DiscardingSink()), False, DiscardingSink.reads_timestamps, False),
        (specs.SinkWriterSpec(Tolerant()), False, False, False),
        (specs.SinkCommitterSpec(Tolerant()), False, False, False),
        (specs.LegacySinkSpec(Keyed()), False, True, False),
        (specs.LegacySinkSpec(Tolerant()), False, False, False),
        (specs.CollectSinkSpec(), False, False, False),
    ],
    ids=lambda spec: type(spec).__name__ if isinstance(spec, specs.OperatorSpec) else None,
)
def test_specs_know_whether_they_make_read_and_bring_timestamps(
    spec: specs.OperatorSpec, makes: bool, reads: bool, brings: bool
) -> None:
    assert spec.makes_timestamps is makes
    assert spec.reads_timestamps is reads
    assert spec.brings_timestamps is brings


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        (specs.MapSpec(len), True),
        (specs.SinkWriterSpec(Tolerant()), False),
        (specs.CollectSinkSpec(), False),
        (specs.LegacySinkSpec(Keyed()), True),
    ],
    ids=lambda spec: type(spec).__name__ if isinstance(spec, specs.OperatorSpec) else None,
)
def test_specs_know_whether_they_may_change_records(
    spec: specs.OperatorSpec, changes: bool
) -> None:
    assert spec.changes_records is changes


def test_a_source_spec_is_bounded_if_its_connector_is() -> None:
    assert specs.SourceSpec(CollectionSource([1])).is_bounded
    assert not specs.LegacySourceSpec(Keyed()).is_bounded
