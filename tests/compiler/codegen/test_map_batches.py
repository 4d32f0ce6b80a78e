from __future__ import annotations

from typing import Any

from forms import job_of, seen


def test_map_batches_is_one_call_and_a_loop_over_its_results() -> None:
    def draw(env: Any) -> None:
        numbers = env.from_sequence(1, 3).map(lambda n: n + 1)
        batches = numbers.map_batches(lambda batch: batch)
        seen(batches.filter(lambda n: n > 1), "kept", reads_timestamps=False)

    source = job_of(draw, object_reuse=True).vertices[0].source
    assert source is not None
    lines = [line.split("  #")[0] for line in source.splitlines() if '"""' not in line and line]
    lines = lines[lines.index("def loop_0(values):") :]  # what runs where there is no numpy
    expected = [
        "def loop_0(values):",
        "    for value in values:",
        "        value_1 = value + 1",
        "        values_of_2.append(value_1)",
        "    op_0.count(len(values), len(values))",
        "    op_1.count(len(values), len(values))",
        "    op_2.count(len(values), 0)",
        "    flush_2()",
        "def batch_2(values, timestamps):",
        "    before_values_of_4 = len(values_of_4)",
        "    for value in values:",
        "        if not (value > 1):",
        "            continue",
        "        values_of_4.append(value)",
        "    op_3.count(len(values), len(values_of_4) - before_values_of_4)",
        "    op_4.count(len(values_of_4) - before_values_of_4, 0)",
    ]
    assert [line.rstrip() for line in lines[: len(expected)]] == expected


def test_map_batches_keeps_timestamps_if_an_operator_reads_them() -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 3).map_batches(lambda batch: batch), "all")

    source = job_of(draw).vertices[0].source
    assert source is not None
    assert "    for value, timestamp in zip(values, timestamps):" in source
