"""The generated lines of each kind of operator. tests/properties compares their results with interpreted code."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from typing import Any

import pytest
from forms import job_of, seen

from opchain.common import WatermarkStrategy
from opchain.compiler.codegen.lower import LOWERINGS
from opchain.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    MapFunction,
    SinkFunction,
)
from opchain.runtime.program import operator_specs as specs


def module_of(draw: Any, vertex: int = 0, form: str = "inlined", **settings: Any) -> list[str]:
    """The generated lines without their comments, from the loop on."""
    source = job_of(draw, form, **settings).vertices[vertex].source
    assert source is not None
    return [line.split("  #")[0].strip() for line in source.splitlines()]


def body_of(draw: Any, **settings: Any) -> list[str]:
    """The lines of the loop over the first batch."""
    lines = module_of(draw, **settings)
    if "def loop_0(values):" in lines:  # what runs where there is no numpy
        lines = lines[lines.index("def loop_0(values):") :]
    start = lines.index("for value in values:") + 1
    end = next(i for i, line in enumerate(lines) if line.startswith("op_0.count("))
    return lines[start:end]


def parse(value: int, *_unused: int) -> int:  # more arguments keep it from being inlined
    return value


class Rich(MapFunction[int, int]):
    def open(self, runtime_context: Any) -> None:
        pass

    def map(self, value: int) -> int:
        return value


class Either(CoMapFunction[int, int, int]):
    def map1(self, value: int) -> int:
        return value

    map2 = map1


class EitherMany(CoFlatMapFunction[int, int, int]):
    def flat_map1(self, value: int) -> Any:
        yield value

    flat_map2 = flat_map1


class Sink(SinkFunction[int]):
    def invoke(self, value: int, context: SinkFunction.Context) -> None:
        with nullcontext():
            self.value, self.context = value, context
            return  # keeps it from being inlined


def numbers(env: Any) -> Any:
    return env.from_sequence(1, 9)


PUNCTUATED: Any = WatermarkStrategy.for_generator(lambda _: None)  # type: ignore[arg-type,return-value]
COPIED = ["if value_1.__class__ not in IMMUTABLE:", "value_1 = own_copy(value_1)"]


@pytest.mark.parametrize(
    ("draw", "lines"),
    [
        (
            lambda env: numbers(env).map(parse).collect_async(),
            ["value_1 = parse_1(value)", *COPIED, "values_0.append(value_1)"],
        ),
        (
            lambda env: numbers(env).map(lambda x: x + 1).collect_async(),
            ["value_1 = value + 1", "values_0.append(value_1)"],
        ),
        (
            lambda env: numbers(env).filter(parse).rebalance().map(str),
            ["if not parse_1(value):", "continue", "values_0.append(value)"],
        ),
        (
            lambda env: numbers(env).filter(lambda x: x > 1).rebalance().map(str),
            ["if not (value > 1):", "continue", "values_0.append(value)"],
        ),
        (
            lambda env: numbers(env).flat_map(range).rebalance().map(str),
            ["for value_1 in range_1(value):", *COPIED, "values_0.append(value_1)"],
        ),
        (
            lambda env: numbers(env).key_by(str.upper).reduce(max),
            ["keys_0.append(upper_to_0(value))", "values_0.append(value)"],
        ),
        (
            lambda env: numbers(env).key_by(parse).reduce(max),
            [
                "sent_key_0 = parse_to_0(value)",
                "column_0_0.append(sent_key_0)",
                "column_0_1.append(value)",
            ],
        ),
        (
            lambda env: numbers(env).partition_custom(lambda k, n: k % n, lambda x: x + 1).map(str),
            ["keys_0.append(value + 1)", "values_0.append(value)"],
        ),
        (
            lambda env: numbers(env).add_sink(Sink()),
            ["sink_1(value, context_1)"],
        ),
    ],
    ids=[
        *("map", "inlined map", "filter", "inlined filter", "flat map"),
        *("keyed exchange", "key that is sent", "custom exchange", "legacy sink"),
    ],
)
def test_each_operator_generates_these_lines(draw: Any, lines: list[str]) -> None:
    body = body_of(draw)
    if "collect" in lines[-1] or lines[-1] == "values_0.append(value_1)":
        body = [line.replace("values_of_2", "values_0") for line in body]
    assert body == lines


def test_a_filter_at_a_fork_becomes_an_if() -> None:
    def draw(env: Any) -> None:
        kept = numbers(env).map(abs)
        kept.filter(lambda x: x > 1).add_sink(Sink())
        kept.filter(lambda x: x > 2).add_sink(Sink())

    assert body_of(draw) == [
        "value_1 = abs_1(value)",
        *("value_1_for_2 = value_1", "if value_1_for_2.__class__ not in IMMUTABLE:"),
        "value_1_for_2 = own_copy(value_1_for_2)",
        *("if value_1_for_2 > 1:", "count_2 += 1", "sink_3(value_1_for_2, context_3)"),
        *("if not (value_1 > 2):", "continue", "count_4 += 1"),
        *("if value_1.__class__ not in IMMUTABLE:", "value_1 = own_copy(value_1)"),
        "sink_5(value_1, context_5)",
    ]


def test_a_filter_without_consumers_still_calls_its_function() -> None:
    def draw(env: Any) -> None:
        stream = numbers(env)
        stream.filter(parse)
        stream.filter(parse)

    body = body_of(draw, object_reuse=True)
    assert body == [
        *("if parse_1(value):", "count_1 += 1"),
        *("if not parse_2(value):", "continue", "count_2 += 1"),
    ]


def test_the_key_is_set_before_a_rich_function_on_a_keyed_stream() -> None:
    def draw(env: Any) -> None:
        seen(numbers(env).key_by(lambda x: x % 3).map(Rich()), "s")

    lines = module_of(draw, vertex=1, form="generated")
    start = lines.index("key_0 = key_fn_of_0(value)")
    assert lines[start + 1] == "set_key_0(key_0)"
    lines = module_of(draw, vertex=1)
    start = lines.index("key_0 = value % 3")
    assert lines[start + 1] == "values_of_1.append(value)"  # its code does not read the key
    assert lines[start + 2 : start + 4] == ["if values:", "set_key_0(key_0)"]


@pytest.mark.parametrize(
    ("function", "method", "lines"),
    [
        (Either(), "map", ["value_0 = either_0_1(value)", "if value_0 is None:", "continue"]),
        (EitherMany(), "flat_map", ["found_0 = either_many_0_1(value)"]),
    ],
)
def test_an_operator_with_two_inputs_has_a_function_for_each(
    function: Any, method: str, lines: list[str]
) -> None:
    def draw(env: Any) -> None:
        seen(getattr(numbers(env).connect(numbers(env)), method)(function), "s")

    module = module_of(draw, vertex=2, form="generated")
    start = module.index(lines[0])
    assert module[start : start + len(lines)] == lines
    assert "def process_1(values):" in module
    assert lines[0].replace("_1(value)", "_2(value)") in module


@pytest.mark.parametrize(
    ("mode", "lines"),
    [
        (
            "STREAMING",
            [
                "key_0 = value % 3",
                "previous_0 = table_0.get(key_0)",
                *("if previous_0 is None:", "value_0 = value", "else:"),
                *("value_0 = previous_0 + value", "table_0[key_0] = value_0"),
            ],
        ),
        (
            "BATCH",
            [
                "key_0, item_0 = value",
                *("if key_0.__class__ not in plain_keys_0:", "key_0 = identify_0(key_0)"),
                "previous_0 = table_0.get(key_0)",
                *("if previous_0 is None:", "value_0 = item_0", "else:"),
                *("value_0 = previous_0 + item_0", "table_0[key_0] = value_0"),
            ],
        ),
    ],
)
def test_a_reduce_folds_into_its_state_table(mode: str, lines: list[str]) -> None:
    def draw(env: Any) -> None:
        seen(numbers(env).key_by(lambda x: x % 3).reduce(lambda a, b: a + b), "s")

    module = module_of(draw, vertex=1, mode=mode)
    start = module.index(lines[0])
    assert module[start : start + len(lines)] == lines


def test_an_operator_that_emits_from_timers_is_called_with_an_emit_function() -> None:
    def draw(env: Any) -> None:
        stamped = numbers(env).assign_timestamps_and_watermarks(PUNCTUATED)
        stamped.map(parse).print()

    module = module_of(draw)
    assert "assign_watermarks_1_0(value, None)" in module
    start = module.index("def emit_1(value, timestamp):")
    assert "value_2 = parse_2(value)" in module[start:]


def test_every_spec_that_has_an_emitter_is_an_operator_spec() -> None:
    kinds = {kind for _, kind in inspect.getmembers(specs, inspect.isclass)}
    assert LOWERINGS.keys() <= kinds


def test_without_inlining_every_function_is_called() -> None:
    def draw(env: Any) -> None:
        numbers(env).map(lambda x: x + 1).filter(lambda x: x > 1).print()

    body = body_of(draw, form="generated")
    assert body[0] == "value_1 = map_1(value)"
    assert "if not filter_2(value_1):" in body
