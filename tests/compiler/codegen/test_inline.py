# ruff: noqa: C416, PLW0108, S307, T201, UP028 - the functions under test are what users write
from __future__ import annotations

from typing import Any

import pytest

from opchain.compiler.codegen.inline import BUILTINS, expression_of

LIMIT = 10
SHIFTING = 1
MARK = "!"
LINE_END = "\n"
ENDLESS = 10**5_000


def shift() -> None:
    global SHIFTING  # noqa: PLW0603 - this is what inlining must notice
    SHIFTING += 1


def doubled(value: int) -> int:
    """Twice."""
    return value * 2


def logged(value: int) -> int:
    print(value)
    return value


def words(line: str) -> Any:
    yield from line.split()


def each(line: str) -> Any:
    for word in line.split():
        yield word


def capped(value: int, most: int = 5) -> int:
    return min(value, most)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x + 1, "value + 1"),
        (lambda x: x > LIMIT, "value > 10"),
        (lambda x: x[0], "value[0]"),
        (lambda x: (x, len(x)), "(value, len(value))"),
        (lambda x: [y * x for y in range(x)], "[y * value for y in range(value)]"),
        (lambda x: f"{x!r:>3}", "f'{value!r:>3}'"),
        (lambda x: x.strip().lower(), "value.strip().lower()"),
        (doubled, "value * 2"),
    ],
)
def test_an_expression_takes_the_call_s_place(function: Any, text: str) -> None:
    expression = expression_of(function)
    assert expression is not None
    assert expression.applied_to("value") == text


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: logged(x), id="calls a function"),
        pytest.param(lambda x: x + SHIFTING, id="a global that is rebound"),
        pytest.param(lambda x: lambda y: x, id="a lambda outlives the call"),
        pytest.param(lambda x: (y for y in x), id="a generator outlives the call"),
        pytest.param(lambda x, y=1: x + y, id="a default"),
        pytest.param(lambda *x: x, id="any number of arguments"),
        pytest.param(lambda x: (y := x) + y, id="binds a name"),
        pytest.param(lambda x: [value_1 for value_1 in x], id="binds one of our names"),
        pytest.param(lambda x: [x for x in x], id="hides its parameter"),
        pytest.param(lambda x: [MARK for MARK in x] + [MARK], id="hides a global elsewhere"),
        pytest.param(
            lambda x: [[MARK for MARK in y] + [MARK] for y in x], id="hides a global deep inside"
        ),
        pytest.param(lambda x: x % ENDLESS, id="a number too long to write"),
        pytest.param(lambda x: f"{LINE_END.join(x)}", id="a line end within an f-string"),
        pytest.param(logged, id="two statements"),
        pytest.param(capped, id="a default of a def"),
        pytest.param(str.upper, id="not a Python function"),
        pytest.param("text", id="no function at all"),
        pytest.param(lambda x: eval("x"), id="a builtin that looks around"),
    ],
)
def test_everything_else_stays_a_call(function: Any) -> None:
    assert expression_of(function) is None


def test_a_closure_s_constant_is_written_in() -> None:
    keys = 7
    expression = expression_of(lambda x: x % keys)
    assert expression is not None
    assert expression.applied_to("value") == "value % 7"


def test_a_closure_over_anything_else_stays_a_call() -> None:
    table = {1: 2}
    assert expression_of(lambda x: table[x]) is None


def test_a_variable_that_an_inner_function_rebinds_is_no_constant() -> None:
    seen = 0

    def see() -> None:
        nonlocal seen
        seen += 1

    see()
    assert expression_of(lambda x: x + seen) is None


def test_several_lambdas_on_a_line_are_told_apart() -> None:
    first, second = (lambda x: x + 1), (lambda x: x - 1)
    found = [expression_of(function) for function in (first, second)]
    assert [item.applied_to("v") for item in found if item] == ["v + 1", "v - 1"]


def test_lambdas_that_differ_only_in_the_type_of_a_constant_are_told_apart() -> None:
    first, second = (lambda x: x == 1), (lambda x: x == True)  # noqa: E712
    found = [expression_of(function) for function in (first, second)]
    assert [item.applied_to("v") for item in found if item] == ["v == 1", "v == True"]


@pytest.mark.parametrize("function", [words, each])
def test_a_generator_is_its_iterable_where_it_is_looped_over(function: Any) -> None:
    expression = expression_of(function, is_iterated=True)
    assert expression is not None
    assert expression.applied_to("v") == "v.split()"
    assert expression_of(function) is None


def test_a_generator_expression_may_be_looped_over() -> None:
    function: Any = lambda x: (x + i for i in range(3))  # noqa: E731
    assert expression_of(function) is None
    expression = expression_of(function, is_iterated=True)
    assert expression is not None


@pytest.mark.parametrize(
    ("function", "is_fresh"),
    [(lambda x: x + 1, True), (lambda x: (x, 1), True), (lambda x: x.tags, False)],
)
def test_what_is_read_from_an_attribute_may_be_somebody_else_s(
    function: Any, is_fresh: bool
) -> None:
    expression = expression_of(function)
    assert expression is not None
    assert expression.is_fresh is is_fresh


def test_a_hidden_builtin_is_not_the_builtin() -> None:
    space: dict[str, Any] = {"len": lambda _: 42}
    hidden = type(doubled)((lambda x: len(x)).__code__, space, "<lambda>")
    assert expression_of(hidden) is None
    assert "len" in BUILTINS


def test_a_variable_of_the_function_around_hides_a_builtin() -> None:
    len = lambda _: 42  # noqa: A001, E731
    assert expression_of(lambda x: len(x)) is None


def test_a_variable_of_the_function_around_may_be_hidden_in_a_part() -> None:
    mark = "!"
    assert expression_of(lambda x: [mark for mark in x] + [mark]) is None


def test_a_comprehension_s_variable_may_be_read_in_one_within() -> None:
    expression = expression_of(lambda x: [[i * j for i in range(j)] for j in range(x)])
    assert expression is not None


def test_a_backslash_within_an_f_string_is_no_error() -> None:
    mark = "\\"
    expression = expression_of(lambda x: f"{mark.join(x)}")
    assert expression is None or eval(expression.applied_to("'ab'")) == "a\\b"


@pytest.mark.parametrize(
    "function", [lambda x: [x, x], lambda x: (x for _ in range(2)), lambda x: x]
)
def test_what_is_looped_over_may_give_one_object_again(function: Any) -> None:
    expression = expression_of(function, is_iterated=True)
    assert expression is not None
    assert expression.only_reads
    assert not expression.is_fresh


def test_two_parameters_are_replaced_by_position() -> None:
    expression = expression_of(lambda a, b: (a[0], a[1] + b[1]))
    assert expression is not None
    assert expression.applied_to("previous", "value") == "(previous[0], previous[1] + value[1])"
