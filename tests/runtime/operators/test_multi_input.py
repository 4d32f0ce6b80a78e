from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, failure_of, notes_of, run_form, seen

from opchain.common import Types
from opchain.compiler.dsl.connected_streams import multiple_input
from opchain.datastream import FlatMapFunction
from opchain.datastream.state import ValueStateDescriptor

if TYPE_CHECKING:
    from opchain.datastream import RuntimeContext, StreamExecutionEnvironment


class Count(FlatMapFunction):
    """The value with the number of records of its key on all inputs so far."""

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def flat_map(self, value: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield self.tag, value, count


@pytest.mark.parametrize("form", FORMS)
def test_each_input_has_its_own_function(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        numbers, words = env.from_collection([1, 2]), env.from_collection(["a b", "c"])
        merged = multiple_input([numbers, words], [lambda value: [value] * 2, str.split])
        seen(merged.map(str), "out")

    assert sorted(run_form(draw, form).records("out")) == ["1", "1", "2", "2", "a", "b", "c"]


@pytest.mark.parametrize("form", FORMS)
def test_keyed_inputs_share_the_state_of_a_key(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        streams = [
            env.from_collection(words).key_by(lambda word: word[0])
            for words in (["apple", "bean"], ["ant", "ape"], ["bee"])
        ]
        seen(multiple_input(streams, [Count("1"), Count("2"), Count("3")]), "out")

    found = run_form(draw, form, parallelism=2).records("out")
    assert {(tag, word) for tag, word, _ in found} == {
        *(("1", "apple"), ("1", "bean"), ("2", "ant"), ("2", "ape"), ("3", "bee"))
    }
    for first_letter, most in (("a", 3), ("b", 2)):
        counts = [count for _, word, count in found if word[0] == first_letter]
        assert counts == list(range(1, most + 1))


def test_functions_are_opened_and_closed() -> None:
    class Traced(FlatMapFunction):
        def __init__(self, name: str) -> None:
            self.name = name

        def open(self, runtime_context: RuntimeContext) -> None:
            self.is_open = True

        def flat_map(self, value: Any) -> Any:
            assert self.is_open
            yield self.name, value

        def close(self) -> None:
            raise OSError(f"{self.name} was closed")

    def draw(env: StreamExecutionEnvironment) -> None:
        streams = [env.from_collection([1]), env.from_collection([2])]
        seen(multiple_input(streams, [Traced("first"), Traced("second")]), "out")

    error = failure_of(draw)
    assert str(error) == "first was closed"


@pytest.mark.parametrize("form", FORMS)
def test_an_error_names_the_operator_and_the_record(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        streams = [env.from_collection([1]), env.from_collection([0])]
        seen(multiple_input(streams, [lambda value: [value], lambda value: [1 // value]]), "out")

    error = failure_of(draw, form)
    assert isinstance(error, ZeroDivisionError)
    assert "in 'Multiple Input Operator' (test_multi_input.py:" in notes_of(error)
    assert "at record 0" in notes_of(error)


def test_a_result_of_none_is_refused() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        seen(multiple_input([env.from_collection([1])], [lambda value: None]), "out")

    error = failure_of(draw)
    assert isinstance(error, TypeError)
    assert "must return an iterable" in notes_of(error)
