import pytest
from programs import drawn

from opchain import StreamExecutionEnvironment
from opchain.testing import assert_chained, assert_not_chained, plan_of


def test_assert_chained_passes_for_neighbours_in_one_task() -> None:
    assert_chained(drawn("word_count"), "split", "pair")
    assert_chained(drawn("deep_chain"), "count", "step 1", "step 2")


def test_assert_chained_needs_only_the_first_and_last_operator() -> None:
    assert_chained(drawn("deep_chain"), "count", "any")


def test_assert_chained_takes_an_environment_a_program_or_a_plan() -> None:
    env = drawn("word_count")
    assert_chained(env.program(), "split", "pair")
    assert_chained(plan_of(env), "split", "pair")


def test_assert_chained_fails_with_the_broken_rules_and_the_plan() -> None:
    with pytest.raises(AssertionError) as failed:
        assert_chained(drawn("word_count"), "split", "pair", "count")
    message = str(failed.value)
    assert message.startswith("not chained: 'pair' (programs.py:")
    assert "    parallelism: parallelism differs: 'pair'" in message
    assert "        to chain: give both the same parallelism" in message
    assert "vertex 3  x4, 128 key groups" in message


def test_assert_chained_fails_for_operators_in_reverse_order() -> None:
    for check in (assert_chained, assert_not_chained):
        with pytest.raises(AssertionError, match=r"no records go from 'pair' .* to 'split'"):
            check(drawn("word_count"), "pair", "split")


def test_assert_not_chained_passes_with_an_exchange_anywhere_between() -> None:
    assert_not_chained(drawn("word_count"), "split", "count")
    assert_not_chained(drawn("word_count"), "lines", "count", because="partitioner")


def test_assert_not_chained_fails_for_chained_operators_with_the_plan() -> None:
    with pytest.raises(AssertionError, match="chained: 'split'") as failed:
        assert_not_chained(drawn("word_count"), "split", "pair")
    assert "vertex 2  x2" in str(failed.value)


@pytest.mark.parametrize("because", ["parallelism", "partitioner", "hash by 'first'", "RUNS 4"])
def test_assert_not_chained_takes_a_rule_code_or_words_of_its_reason(because: str) -> None:
    assert_not_chained(drawn("word_count"), "pair", "count", because=because)


@pytest.mark.parametrize("because", ["union", "max-parallelism", "no such words"])
def test_assert_not_chained_fails_for_another_reason_with_the_true_ones(because: str) -> None:
    with pytest.raises(AssertionError) as failed:
        assert_not_chained(drawn("word_count"), "pair", "count", because=because)
    assert f"not chained, but not because of '{because}'" in str(failed.value)
    assert "    partitioner: records move" in str(failed.value)


def test_assert_chained_passes_if_one_of_several_paths_is_in_one_task() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    first = env.from_sequence(1, 9).map(abs).name("first")
    first.rebalance().map(abs).name("aside").print()
    first.map(abs).name("between").map(abs).name("last").print()
    assert_chained(env, "first", "last")
    assert_not_chained(env, "first", "aside", because="rebalance")
