from __future__ import annotations

from pathlib import Path

import pytest
from programs import PROGRAMS, drawn

from opchain import StreamExecutionEnvironment
from opchain.common import Types
from opchain.compiler.assertions.chaining import assert_matches_golden
from opchain.compiler.dsl.connected_streams import multiple_input
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.explain import explain
from opchain.compiler.plan.from_plan import stream_plan
from opchain.compiler.plan.text import (
    edges_text,
    exchange_text,
    plan_text,
    stream_graph_text,
    without_call_sites,
)
from opchain.testing import assert_plan_matches, plan_of

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_plan_text_of_each_program_equals_its_golden_file(name: str) -> None:
    assert_plan_matches(drawn(name), GOLDEN / f"{name}.job-graph")


def test_call_sites_in_the_plan_text_name_the_line_of_each_operator() -> None:
    plan = plan_of(drawn("two_sinks"))
    lines = [line for line in plan_text(plan).splitlines() if "  programs.py:" in line]
    assert len(lines) == len(plan.operators)


def test_golden_text_has_no_line_numbers_of_the_program() -> None:
    assert "programs.py:" not in plan_text(plan_of(drawn("rescale")), call_sites=False)


def test_reasons_are_wrapped_at_the_width_but_names_are_not() -> None:
    text = plan_text(plan_of(drawn("word_count")), width=64, call_sites=False)
    assert max(len(line) for line in text.splitlines() if line.startswith("     ")) <= 64
    assert (
        "not chained: records are rebalanced, because\n                      parallelism differs"
        in text
    )
    assert "  Source: lines            source    source position\n" in text


def test_the_plan_text_of_a_thousand_operators_stays_narrow() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_sequence(1, 9)
    for _ in range(1_000):
        stream = stream.map(abs)
    stream.print()
    text = plan_text(plan_of(env), call_sites=False)
    assert text.count("\n  -> Map") == 1_000
    assert max(map(len, text.splitlines())) < 80


def test_line_breaks_in_names_cannot_break_the_layout() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, 9).map(str).name("two\nlines\x1b[31m").name("x" * 500).print()
    env.from_sequence(1, 9).map(str).name("two\nlines\x1b[31m").print()
    text = plan_text(plan_of(env), call_sites=False)
    assert r"-> two\nlines\x1b[31m" in text
    assert "x" * 45 + "..." in text
    assert "x" * 46 not in text


def test_a_max_parallelism_without_effect_due_to_chaining_is_mentioned() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, 9).map(str).name("add").set_max_parallelism(64).print()
    assert "its max parallelism 64 has no effect inside a chain" in plan_text(plan_of(env))


def test_chained_sources_are_listed_above_their_head() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    sources = [env.from_sequence(1, 9).name(name) for name in "ab"]
    multiple_input(sources, [lambda n: [n]] * 2).name("both").print()
    lines = plan_text(plan_of(env), call_sites=False).splitlines()
    assert [line.split("  ")[1] for line in lines[3:6]] == ["┌─ Source: a", "├─ Source: b", "both"]


def test_exchange_text_has_the_partitioning_and_the_side_output() -> None:
    plan = plan_of(drawn("side_outputs"))
    cut = next(edge for edge in plan.edges if not edge.is_chained)
    assert exchange_text(cut) == "HASH by 'key', side output 'odd'"
    batch = plan_of(drawn("batch"))
    assert exchange_text(batch.edges[0]) == "REBALANCE, blocking"


def test_without_call_sites_removes_only_call_sites_of_operators() -> None:
    text = "'a' (job.py:1) runs (at 1:1) beside 'b' (job.py:12)"
    assert without_call_sites(text, {"job.py:1", "job.py:12"}) == "'a' runs (at 1:1) beside 'b'"


def test_the_explanation_of_edges_equals_its_golden_file() -> None:
    text = edges_text(plan_of(drawn("two_sinks")), call_sites=False)
    assert_matches_golden(text, GOLDEN / "two_sinks.edges")


def test_edges_text_has_a_line_for_every_edge_and_broken_rule() -> None:
    plan = plan_of(drawn("union"))
    lines = edges_text(plan).splitlines()
    assert sum(line.startswith(("chained ", "not chained ")) for line in lines) == len(plan.edges)
    rules = sum(len(edge.not_chained_because) for edge in plan.edges)
    assert sum("to chain: " in line for line in lines) == rules
    assert "job 'Flink Streaming Job', STREAMING: 5 edges, 2 chained, 3 not" in lines[0]


def test_operators_with_equal_names_are_shown_with_their_lines() -> None:
    plan = plan_of(drawn("union"))
    assert f"'low' ({plan.operators[0].call_site})".replace("'low'", "'Source: low'") in edges_text(
        plan
    )


@pytest.mark.parametrize("name", ["batch", "side_outputs", "two_sinks"])
def test_the_stream_graph_text_equals_its_golden_file(name: str) -> None:
    assert_plan_matches(drawn(name), GOLDEN / f"{name}.stream-graph", stage="stream-graph")


def test_call_sites_are_shown_unless_switched_off() -> None:
    plan = stream_plan(compile_program(drawn("join").program(), "operator-ids"))
    text = stream_graph_text(plan)
    assert text.count("programs.py:") == len(plan.operators)
    assert "programs.py:" not in stream_graph_text(plan, call_sites=False)


@pytest.mark.parametrize("name", ["word_count", "diamond", "side_outputs"])
def test_the_execution_plan_text_equals_its_golden_file(name: str) -> None:
    assert_plan_matches(drawn(name), GOLDEN / f"{name}.execution", stage="execution")


def test_with_many_subtasks_only_the_first_key_groups_are_listed() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, 9).key_by(abs).reduce(max).set_parallelism(64).print()
    text = explain(env.program(), "execution")
    assert "key groups: 0-1, 2-3," in text
    assert "30-31, ..." in text


def test_the_plan_text_names_edges_with_pickled_records() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    words = env.from_collection(["a"], type_info=Types.STRING()).rebalance()
    sized = words.map(lambda word: (word, len(word))).name("untyped")
    sized.rebalance().map(str, output_type=Types.STRING()).name("typed").print()
    first, second, *_ = [
        line for line in edges_text(plan_of(env)).splitlines() if " REBALANCE" in line
    ]
    assert "'untyped'" in first
    assert first.endswith("REBALANCE")
    assert second.endswith("REBALANCE, pickled")
    drawn_edges = [line for line in plan_text(plan_of(env)).splitlines() if "==> " in line]
    assert [line.endswith(", pickled") for line in drawn_edges[:2]] == [False, True]
