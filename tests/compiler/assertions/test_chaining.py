import pytest
from programs import drawn

from opchain import StreamExecutionEnvironment
from opchain.testing import assert_chained, assert_not_chained, plan_of


def test_neighbours_in_one_task_are_chained() -> None:
    assert_chained(drawn("word_count"), "split", "pair")
    assert_chained(drawn("deep_chain"), "count", "step 1", "step 2")


def test_what_lies_between_may_be_left_out() -> None:
    assert_chained(drawn("deep_chain"), "count", "any")


def test_a_program_and_a_plan_do_as_well_as_an_environment() -> None:
    env = drawn("word_count")
    assert_chained(env.program(), "split", "pair")
    assert_chained(plan_of(env), "split", "pair")


def test_what_is_cut_fails_with_the_rules_and_the_plan() -> None:
    with pytest.raises(AssertionError) as failed:
        assert_chained(drawn("word_count"), "split", "pair", "count")
    message = str(failed.value)
    assert message.startswith("not chained: 'pair' (programs.py:")
    assert "    parallelism: parallelism differs: 'pair'" in message
    assert "        to chain: give both the same parallelism" in message
    assert "vertex 3  x4, 128 key groups" in message


def test_the_wrong_direction_is_not_chained() -> None:
    for check in (assert_chained, assert_not_chained):
        with pytest.raises(AssertionError, match=r"no records go from 'pair' .* to 'split'"):
            check(drawn("word_count"), "pair", "split")


def test_an_exchange_somewhere_on_the_way_is_enough() -> None:
    assert_not_chained(drawn("word_count"), "split", "count")
    assert_not_chained(drawn("word_count"), "lines", "count", because="partitioner")


def test_chained_operators_fail_with_the_plan() -> None:
    with pytest.raises(AssertionError, match="chained: 'split'") as failed:
        assert_not_chained(drawn("word_count"), "split", "pair")
    assert "vertex 2  x2" in str(failed.value)


@pytest.mark.parametrize("because", ["parallelism", "partitioner", "hash by 'first'", "RUNS 4"])
def test_a_reason_is_a_code_or_words(because: str) -> None:
    assert_not_chained(drawn("word_count"), "pair", "count", because=because)


@pytest.mark.parametrize("because", ["union", "max-parallelism", "no such words"])
def test_another_reason_fails_with_the_true_ones(because: str) -> None:
    with pytest.raises(AssertionError) as failed:
        assert_not_chained(drawn("word_count"), "pair", "count", because=because)
    assert f"not chained, but not because of '{because}'" in str(failed.value)
    assert "    partitioner: records move" in str(failed.value)


def test_a_way_inside_the_task_goes_before_one_outside() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    first = env.from_sequence(1, 9).map(abs).name("first")
    first.rebalance().map(abs).name("aside").print()
    first.map(abs).name("between").map(abs).name("last").print()
    assert_chained(env, "first", "last")
    assert_not_chained(env, "first", "aside", because="rebalance")
