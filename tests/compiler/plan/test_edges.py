from pathlib import Path

from programs import drawn

from opchain.common import Types
from opchain.compiler.assertions.plan_golden import assert_matches_golden
from opchain.compiler.plan.edges import edges_text
from opchain.datastream import StreamExecutionEnvironment
from opchain.testing import plan_of

GOLDEN = Path(__file__).parents[2] / "golden"


def test_every_edge_is_explained_as_reviewed() -> None:
    text = edges_text(plan_of(drawn("two_sinks")), call_sites=False)
    assert_matches_golden(text, GOLDEN / "two_sinks.edges")


def test_there_is_a_line_for_every_edge_and_rule() -> None:
    plan = plan_of(drawn("union"))
    lines = edges_text(plan).splitlines()
    assert sum(line.startswith(("chained ", "not chained ")) for line in lines) == len(plan.edges)
    rules = sum(len(edge.not_chained_because) for edge in plan.edges)
    assert sum("to chain: " in line for line in lines) == rules
    assert "job 'Flink Streaming Job', STREAMING: 5 edges, 2 chained, 3 not" in lines[0]


def test_equal_names_are_told_apart_by_their_lines() -> None:
    plan = plan_of(drawn("union"))
    assert f"'low' ({plan.operators[0].call_site})".replace("'low'", "'Source: low'") in edges_text(
        plan
    )


def test_edges_that_pickle_their_records_are_named() -> None:
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
