"""Inlined functions have the arguments and variables that a Python call would have."""

from __future__ import annotations

import math
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, itemgetter, methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from forms import FORMS, job_of, run_form, seen

from opchain.common import Row, Types
from opchain.datastream import FlatMapFunction, MapFunction, OutputTag, ProcessFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def second(_first: Any, value: Any) -> Any:
    return value


def difference(a: int, b: int) -> int:
    return a - b


class Incomparable:
    def __gt__(self, other: Any) -> bool:
        raise ValueError("cannot be compared")

    def __lt__(self, other: Any) -> bool:
        raise ValueError("cannot be compared")


LEAST = Incomparable()


class CountsCalls(MapFunction[int, int]):
    def __init__(self) -> None:
        self.calls = 0

    def bump(self, value: int) -> int:
        self.calls += 1
        return value

    def map(self, value: int) -> int:
        return second(self.bump(value), value) + self.calls


def results(draw: Callable[[Any], Any], form: str) -> list[Any]:
    return run_form(lambda env: seen(draw(env), "out"), form).records("out")


@pytest.mark.parametrize("form", FORMS)
def test_an_unused_argument_is_still_computed(form: str) -> None:
    assert results(lambda env: env.from_sequence(1, 3).map(CountsCalls()), form) == [2, 4, 6]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda v: second(1 // (v - 2), v), "by zero"),
        (lambda v: second(v > LEAST, v), "cannot be compared"),
        (lambda v: second(LEAST if v > LEAST else 1, v), "cannot be compared"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_an_unused_argument_may_still_raise_an_error(
    form: str, function: Any, message: str
) -> None:
    with pytest.raises((ArithmeticError, ValueError), match=message):
        results(lambda env: env.from_sequence(1, 3).map(function), form)


@pytest.mark.parametrize("form", FORMS)
def test_an_argument_may_contain_an_assignment_expression(form: str) -> None:
    def draw(env: Any) -> Any:
        return env.from_sequence(1, 3).map(lambda v: difference(v, (v := 10)))

    assert results(draw, form) == [-9, -8, -7]


@pytest.mark.filterwarnings("ignore:.*returns a generator")
@pytest.mark.parametrize("form", FORMS)
def test_the_length_of_a_generator_is_an_error(form: str) -> None:
    def draw(env: Any) -> Any:
        lengths = env.from_sequence(1, 3).map(lambda v: (c for c in "ab"))
        return lengths.map(lambda letters: (len(letters), 1)).map(lambda pair: pair[1])

    with pytest.raises(TypeError, match="has no len"):
        results(draw, form)


def previous_list(value: int) -> Any:
    last: Any = 0
    result: Any = 0
    for _ in range(3):
        result = last
        last = [value]
    return result


def previous_number(_value: int) -> float:
    last = 0.5
    result = 0.5
    for _ in range(3):
        result = last
        last = 1
    return result


def changed(values: list[int]) -> list[int]:
    values.append(1)
    return values


@pytest.mark.parametrize("form", FORMS)
def test_a_variable_may_change_its_type_in_a_loop(form: str) -> None:
    def forked(env: Any) -> Any:
        lists = env.from_sequence(1, 2).map(previous_list)
        return lists.map(changed).union(lists.map(list))

    assert sorted(results(forked, form)) == [[1], [1, 1], [2], [2, 1]]

    def declared(env: Any) -> Any:
        return env.from_sequence(1, 2).map(previous_number, output_type=Types.DOUBLE())

    assert [type(each) for each in results(declared, form)] == [float, float]


def pair_of(value: int) -> Any:
    try:
        return [value] * value
    except ValueError:
        return 7, 8


def sum_of_pair(value: int) -> int:
    first, second = pair_of(value)
    return first + second


@pytest.mark.parametrize("form", FORMS)
def test_a_called_function_does_not_catch_what_its_caller_raises(form: str) -> None:
    with pytest.raises(ValueError, match="too many values to unpack"):
        results(lambda env: env.from_sequence(2, 3).map(sum_of_pair), form)


SEEN: list[Any] = []


def first_of(value: int, others: list[int]) -> int:
    for other in others:
        try:
            return other
        finally:
            SEEN.append(value)
    return 0


def sets_its_argument(value: int) -> int:
    number = value
    number = first_of(number, [number + 10])
    return number  # noqa: RET504 - the argument is set


@pytest.mark.parametrize("form", FORMS)
def test_finally_runs_before_the_result_is_assigned(form: str) -> None:
    SEEN.clear()
    assert results(lambda env: env.from_sequence(1, 2).map(sets_its_argument), form) == [11, 12]
    assert SEEN == [1, 2]


def power(value: int, base: int = -2) -> int:
    return value + base**2


@dataclass
class Point:
    x: int
    y: int = -2


@pytest.mark.parametrize("form", FORMS)
def test_a_default_of_a_parameter_may_be_negative(form: str) -> None:
    assert results(lambda env: env.from_sequence(1, 1).map(lambda v: power(v) + 0), form) == [5]

    def points(env: Any) -> Any:
        return env.from_sequence(1, 1).map(lambda v: Point(v + 0)).map(lambda point: point.y**2)

    assert results(points, form) == [4]


def sometimes_set(value: int) -> int:
    [(last := item) for item in range(value)]
    return last


def set_before_an_error(value: int) -> int:
    with suppress(ZeroDivisionError):
        last = 1 // value
    return last


def set_before_a_break(value: int) -> int:
    for item in range(value):
        if item:
            last = item
            break
    else:
        value += 1
    return last


def set_in_a_comprehension(value: int) -> int:
    total = sum(last for last in range(value))
    for last in range(value):
        total += last
    return total + last


@pytest.mark.parametrize(
    "function", [sometimes_set, set_before_an_error, set_before_a_break, set_in_a_comprehension]
)
@pytest.mark.parametrize("form", FORMS)
def test_a_variable_that_is_not_set_is_an_unbound_local_error(form: str, function: Any) -> None:
    with pytest.raises(UnboundLocalError, match="'last'"):
        results(lambda env: env.from_collection([2, 0]).map(function), form)


class SetsLater(MapFunction[int, int]):
    def __init__(self) -> None:
        self.calls = 0

        def bump() -> None:
            self.calls += 1

        self.bump = bump

    def map(self, value: int) -> int:
        self.bump()
        return value + self.calls


@pytest.mark.parametrize("form", FORMS)
def test_a_function_that_init_defines_may_set_an_attribute(form: str) -> None:
    assert results(lambda env: env.from_sequence(1, 3).map(SetsLater()), form) == [2, 4, 6]


class Room:
    def floor(self, number: int) -> int:
        return 100 + number


ROOMS = [Room()]


def floors(value: int) -> int:
    return math.floor(0.5) + value


def floors_of_rooms(value: int) -> int:
    return sum(math.floor(value) for math in ROOMS)


@pytest.mark.parametrize("form", FORMS)
def test_the_variable_of_a_generator_hides_a_module(form: str) -> None:
    assert results(lambda env: env.from_sequence(1, 2).map(floors), form) == [1, 2]
    assert results(lambda env: env.from_sequence(1, 2).map(floors_of_rooms), form) == [101, 102]


def caught_and_finally(value: int) -> Iterator[int]:
    number = value
    try:
        number = 10 // (value - 2)
    except ZeroDivisionError:
        yield number
    finally:
        number = -1
    yield number


@pytest.mark.parametrize("form", FORMS)
def test_a_record_is_emitted_before_finally(form: str) -> None:
    assert results(lambda env: env.from_sequence(2, 3).flat_map(caught_and_finally), form) == [
        *(2, -1, -1)
    ]


class Previous(MapFunction[Any, list[int]]):
    def __init__(self) -> None:
        self.previous: Any = ()

    def map(self, value: Any) -> list[int]:
        found, self.previous = list(self.previous), value
        return found


class Joins:
    def __init__(self) -> None:
        self.kept: Any = ()

    def join(self, items: Any) -> list[int]:
        found, self.kept = list(self.kept), items
        return found


JOINS = Joins()


def joined(value: int) -> list[int]:
    return JOINS.join(value + item for item in range(2))


@pytest.mark.filterwarnings("ignore:.*returns a generator")
@pytest.mark.parametrize("form", FORMS)
def test_a_generator_that_outlives_a_call_keeps_its_own_variables(form: str) -> None:
    def draw(env: Any) -> Any:
        return env.from_sequence(1, 2).map(lambda v: (v + i for i in range(2))).map(Previous())

    assert results(draw, form) == [[], [1, 2]]
    JOINS.kept = ()
    assert results(lambda env: env.from_sequence(1, 2).map(joined), form) == [[], [1, 2]]


def reused(value: int) -> Any:
    error = 1
    try:  # noqa: SIM105 - it is the point
        error = 10 // value
    except ZeroDivisionError as error:  # noqa: F841
        pass
    return error


@pytest.mark.parametrize("form", FORMS)
def test_the_variable_of_a_caught_error_is_deleted(form: str) -> None:
    with pytest.raises(UnboundLocalError, match="'error'"):
        results(lambda env: env.from_sequence(0, 1).map(reused), form)


class Skips(FlatMapFunction[int, Any]):
    def __init__(self) -> None:
        self.skipped = 0

    def skip(self) -> None:
        self.skipped += 1

    def flat_map(self, value: int) -> Iterator[Any]:
        if value == 1:
            return self.skip()
        for number in range(value):
            if number == 1:
                return self.skip()
            yield value, self.skipped
        return None


@pytest.mark.parametrize("form", FORMS)
def test_a_generator_evaluates_its_return_expression(form: str) -> None:
    found = results(lambda env: env.from_sequence(1, 3).flat_map(Skips()), form)
    assert found == [(2, 1), (3, 2)]


def ends_within_try(value: int) -> Any:
    try:
        yield value
        return 1 // value
    except ZeroDivisionError:
        yield "caught"


@pytest.mark.parametrize("form", FORMS)
def test_a_try_catches_errors_in_the_return_expression_of_a_generator(form: str) -> None:
    found = results(lambda env: env.from_sequence(0, 1).flat_map(ends_within_try), form)
    assert found == [0, "caught", 1]


def parsed_or_error(value: str) -> Iterator[Any]:
    try:
        yield value, int(value)
    except ValueError as error:
        yield value, error


def always_caught(value: int) -> str:
    try:
        raise ValueError(value)  # noqa: TRY301 - it is caught here
    except ValueError as error:
        problem = error
    return str(problem)


@pytest.mark.parametrize("form", FORMS)
def test_a_caught_error_may_be_a_record(form: str) -> None:
    def draw(env: Any) -> Any:
        pairs = env.from_collection(["1", "x"]).flat_map(parsed_or_error)
        return pairs.map(lambda pair: type(pair[1]).__name__)

    assert results(draw, form) == ["int", "ValueError"]
    found = results(lambda env: env.from_sequence(1, 2).map(always_caught), form)
    assert found == ["1", "2"]


class YieldsFromNone(ProcessFunction[int, int]):
    def found(self, value: int) -> Any:
        return [value] if value > 1 else None

    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        yield from self.found(value)


class ReturnsNone(YieldsFromNone):
    def process_element(self, value: int, ctx: Any) -> Any:
        return self.found(value)


@pytest.mark.parametrize("form", FORMS)
def test_a_function_may_return_none_but_yield_from_none_fails(form: str) -> None:
    assert results(lambda env: env.from_sequence(1, 2).process(ReturnsNone()), form) == [2]
    with pytest.raises(TypeError, match="'NoneType' object is not iterable"):
        results(lambda env: env.from_sequence(1, 2).process(YieldsFromNone()), form)


def largest_two(values: list[Any]) -> Any:
    return sorted(values, key=lambda pair: (pair[1], len(pair)), reverse=True)[:2]


def larger_by_global(values: list[Any]) -> Any:
    return max(values, key=lambda pair: difference(pair[1], pair[0]))


def larger_by_closure(values: list[Any]) -> Any:
    least = values[0][1]
    return max(values, key=lambda pair: abs(pair[1] - least))


def larger_by_default(values: list[Any]) -> Any:
    return max(values, key=lambda pair, sign=-1: sign * pair[1])


def next_item(values: list[Any]) -> Any:
    return next(iter(values))


@pytest.mark.parametrize(
    ("function", "expected", "is_inlined"),
    [
        (largest_two, [("b", 3), ("c", 2)], True),
        (larger_by_closure, ("b", 3), False),
        (larger_by_default, ("a", 1), False),
        (next_item, ("a", 1), True),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_a_lambda_in_a_function_may_use_none_of_its_variables(
    form: str, function: Any, expected: Any, is_inlined: bool
) -> None:
    def draw(env: Any) -> None:
        pairs = [("a", 1), ("b", 3), ("c", 2)]
        seen(env.from_sequence(1, 1).map(lambda _: pairs).map(function), "out")

    ran = run_form(draw, form)
    assert ran.records("out") == [expected]
    if form == "inlined":
        remark = f"\"inlined: '{function.__name__}'"
        assert (remark in str(ran.job.vertices)) == is_inlined


@pytest.mark.parametrize("form", FORMS)
def test_a_lambda_in_a_function_reads_globals_when_it_is_called(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(env: Any) -> None:
        pairs = env.from_sequence(1, 2).map(lambda n: [(n, n), (0, n + 1), (n, 5)])
        seen(pairs.map(larger_by_global), "out")

    assert run_form(draw, form).records("out") == [(1, 5), (0, 3)]
    monkeypatch.setitem(globals(), "difference", lambda a, b: b - a)
    assert run_form(draw, form).records("out") == [(1, 1), (2, 2)]


@pytest.mark.parametrize("form", FORMS)
def test_next_of_an_exhausted_iterator_is_an_error(form: str) -> None:
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        results(
            lambda env: env.from_sequence(1, 3).map(lambda n: [n][n - 1 :]).map(next_item), form
        )


ODD = OutputTag("odd", Types.LONG())


def in_a_branch(value: int) -> Iterator[Any]:
    try:
        half = 12 // (value - 3)
        if half > 0:
            half += 1
            yield value, half
    except ZeroDivisionError:
        yield value, None


def in_all_branches(value: int) -> Iterator[Any]:
    try:
        if value < 2:
            yield -value
        elif value < 4:
            yield 12 // (value - 3)
        elif value == 5:
            pass
        elif value == 6:
            yield "six"
        else:
            yield [value]
    except ZeroDivisionError:
        return
    yield "behind"


def after_early_returns(value: int) -> Iterator[Any]:
    try:
        if value == 1:
            return
        if value == 4:
            yield "four"
            return
        quotient = 12 // (value - 3)
        if quotient < 0:
            return
        yield quotient
    except ZeroDivisionError:
        yield "three"


def before_a_finally(value: int) -> Iterator[Any]:
    try:
        if value < 4:
            yield value
    finally:
        value = 0


def not_at_the_end(value: int) -> Iterator[Any]:
    try:
        if value < 4:
            yield value
        yield 12 // (value - 3)
    except ZeroDivisionError:
        yield "three"


@pytest.mark.parametrize(
    "function",
    [in_a_branch, in_all_branches, after_early_returns, before_a_finally, not_at_the_end],
)
@pytest.mark.parametrize("form", FORMS)
def test_a_generator_may_yield_at_the_ends_of_the_branches_of_a_try(
    form: str, function: Any
) -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 7).flat_map(function), "out")

    ran = run_form(draw, form)
    assert ran.records("out") == [each for value in range(1, 8) for each in function(value)]
    if form == "inlined":
        is_inlined = f"\"inlined: '{function.__name__}'" in str(ran.job.vertices)
        assert is_inlined == (function not in (before_a_finally, not_at_the_end))


class InAllBranches(ProcessFunction[int, Any]):
    def process_element(self, value: int, ctx: Any) -> Any:
        try:
            if value % 2:
                yield ODD, 12 // (value - 3)
            else:
                yield 12 // (value - 4)
        except ZeroDivisionError:
            yield -value


@pytest.mark.parametrize("form", FORMS)
def test_branches_of_a_try_may_yield_to_side_outputs(form: str) -> None:
    def draw(env: Any) -> None:
        main = env.from_sequence(1, 6).process(InAllBranches())
        seen(main, "main")
        seen(main.get_side_output(ODD), "odd")

    ran = run_form(draw, form)
    assert ran.records("main") == [-6, -3, -4, 6]
    assert ran.records("odd") == [-6, 6]


def swapped(pair: Any) -> Iterator[Any]:
    try:
        yield pair[1], pair[0]
    except ValueError:
        yield "never"


@pytest.mark.parametrize("form", FORMS)
def test_a_try_may_only_rearrange_the_fields_of_a_record(form: str) -> None:
    def draw(env: Any) -> Any:
        pairs = env.from_sequence(1, 3).map(lambda x: (x, -x)).flat_map(swapped)
        return pairs.rebalance().map(lambda pair: pair)

    assert results(draw, form) == [(-1, 1), (-2, 2), (-3, 3)]


@pytest.mark.parametrize("form", FORMS)
def test_a_try_with_yield_does_not_catch_errors_of_the_next_function(form: str) -> None:
    def draw(env: Any) -> Any:
        return env.from_sequence(1, 7).flat_map(in_a_branch).map(lambda pair: 1 // (pair[0] - 4))

    with pytest.raises(ZeroDivisionError):
        results(draw, form)


class Rates:
    """Methods that are called within expressions, with arguments that are no names."""

    def __init__(self) -> None:
        self.rates = {"a": 2, "b": 3}

    def rate(self, name: str, default: int) -> int:
        return self.rates.get(name, default)

    def swapped(self, one: int, other: int) -> int:
        return other - one

    def twice(self, one: int) -> int:
        return one + one

    def checked_rate(self, name: str, default: int) -> int:
        return fail_on("c", name) or default

    def only_if(self, is_there: bool, one: int) -> int:
        return one if is_there else 0


def fail_on(bad: str, name: str) -> int:
    if name == bad:
        raise LookupError(name)
    return 0


class UsesRates(Rates, MapFunction):
    def map(self, value: Any) -> Any:
        return value[0], self.rate(value[0], value[1] + 1) * value[1]


class UsesSwapped(Rates, MapFunction):
    def map(self, value: Any) -> Any:
        return self.swapped(value[1], value[1] * 2) + 1


class UsesTwice(Rates, MapFunction):
    def map(self, value: Any) -> Any:
        return self.twice(value[1] + 1) * 2


class UsesChecked(Rates, MapFunction):
    def map(self, value: Any) -> Any:
        return 1 + self.checked_rate(value[0], 6 // value[1])


class UsesOnlyIf(Rates, MapFunction):
    def map(self, value: Any) -> Any:
        return 1 + self.only_if(value[0] == "a", 6 // (value[1] + 1))


class Totals(MapFunction):
    """A method whose argument sets an attribute that the method reads before its parameter."""

    def __init__(self) -> None:
        self.total = 0
        self.sums: dict[int, int] = {}

    def add(self, value: int) -> int:
        self.total += value
        self.sums = {value: self.total}
        return value

    def with_total(self, value: int) -> int:
        return self.total * 10 + value

    def sum_at(self, value: int) -> Any:
        return self.sums.get(value)

    def map(self, value: Any) -> Any:
        return [self.with_total(self.add(value[1])), self.sum_at(self.add(value[1]))]


class Switches(MapFunction):
    """A method that calls an attribute, which its argument sets."""

    def __init__(self) -> None:
        self.shown: Any = abs

    def switch(self, value: int) -> int:
        self.shown = [abs, str][value % 2]
        return value

    def show(self, value: int) -> Any:
        return self.shown(value)

    def map(self, value: Any) -> Any:
        return [value[1] and self.show(self.switch(value[1]) - 7)]


def with_real(number: Any, other: int) -> Any:
    return number.real + other


class FailsFirst(MapFunction):
    def map(self, value: Any) -> Any:
        number = None
        try:
            return [with_real(number, 6 // (value[1] - 1))]
        except (ArithmeticError, AttributeError) as error:
            return type(error).__name__


class InComprehension(Rates, MapFunction):
    def map(self, value: Any) -> Any:
        return [self.rate(value[0] + name, n + value[1]) for n, name in enumerate(("", "b"))]


PAIRS = [("a", 1), ("b", 2), ("x", 3)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("function", "expected", "is_inlined"),
    [
        (UsesRates, [("a", 2), ("b", 6), ("x", 12)], True),
        (UsesSwapped, [2, 3, 4], False),
        (UsesTwice, [8, 12, 16], False),
        (UsesChecked, [7, 4, 3], False),
        (UsesOnlyIf, [4, 1, 1], False),
        (Totals, [[11, 2], [42, 6], [93, 12]], True),
        (Switches, [["-6"], [5], ["-4"]], False),
        (FailsFirst, ["ZeroDivisionError", "AttributeError", "AttributeError"], False),
        (InComprehension, [[2, 2], [3, 3], [3, 4]], True),
    ],
)
def test_a_call_within_an_expression_is_inlined_if_its_arguments_come_first(
    form: str, function: Any, expected: list[Any], is_inlined: bool
) -> None:
    ran = run_form(lambda env: seen(env.from_collection(PAIRS).map(function()), "out"), form)
    assert ran.records("out") == expected
    if form == "inlined":
        assert ("is called within an expression" not in str(ran.job.vertices)) is is_inlined


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("function", "error"), [(UsesChecked, ZeroDivisionError), (UsesOnlyIf, ZeroDivisionError)]
)
def test_an_argument_fails_before_the_called_function(
    form: str, function: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        results(lambda env: env.from_collection([("c", 0), ("c", -1)]).map(function()), form)


def quotients_up_to_zero(value: int) -> Iterator[Any]:
    for divisor in (value, value - 1):
        try:
            quotient = 6 // divisor
        except ZeroDivisionError:
            yield "zero"
            return
        yield quotient


@pytest.mark.parametrize("form", FORMS)
def test_a_generator_may_yield_and_return_where_a_loop_catches_an_error(form: str) -> None:
    found = results(lambda env: env.from_sequence(0, 2).flat_map(quotients_up_to_zero), form)
    assert found == ["zero", 6, "zero", 3, 6]


def limited(value: int, *, most: int = 2) -> int:
    if value > most:
        return most
    return value


class Stepping(MapFunction):
    """Expressions that read an attribute before and after a method with several statements changes it."""

    def __init__(self) -> None:
        self.steps = 0

    def step(self, by: int) -> int:
        self.steps += by
        if by > 1:
            return -self.steps
        return self.steps

    def map(self, value: Any) -> Any:
        shown = f"{self.step(value)} after {self.steps}"
        for each in [self.steps, self.step(limited(value, most=1)), self.steps]:
            shown += f", {each}"
        return shown, {
            "at": self.steps,
            "now": self.step(value) * 2,
            "most": limited(most=1, value=5),
        }


STEPS = [
    ("1 after 1, 1, 2, 2", {"at": 2, "now": 6, "most": 1}),
    ("-5 after 5, 5, 6, 6", {"at": 6, "now": -16, "most": 1}),
    ("-11 after 11, 11, 12, 12", {"at": 12, "now": -30, "most": 1}),
]


def deletes(value: int, unused: Any = None) -> Any:
    del unused
    row: Any = {"n": value, "all": [value, 5]}
    other = row
    del other["n"], row["all"][:1]
    del row
    for each in [value]:
        other["row"] = each
        del each
    return other


def imports(value: int) -> Any:
    import math as m  # noqa: PLC0415 - the import is the point
    from itertools import count  # noqa: PLC0415
    from itertools import repeat as again  # noqa: PLC0415

    try:
        import no_such_module as missing  # type: ignore[import-not-found]  # noqa: PLC0415
    except ImportError as error:
        missing = type(error).__name__
    return m.gcd(value, 6), list(again(next(count(value)), 1)), missing


def returns_from_the_middle(value: int) -> Any:
    found = value
    if value > 1:
        found = value * 2
        if found > 4:
            return [found]
        found += 1
    return found, value


def catches_with(value: int) -> Any:
    found: Any = None
    with suppress(ZeroDivisionError), nullcontext((value, 1)) as (first, second):
        found = first // (first - second)
    return found, value


def level_of(value: int) -> str:
    for name, limit in (("low", 1), ("middle", 2)):
        if value <= limit:
            found = name
            break
    else:
        found = "high"
    return found


def returns_or_goes_on(value: int) -> int:
    for each in range(value):
        if each == 1:
            return each
    value += 10
    return value


def kind_of(value: int) -> Any:
    match value, value > 1:
        case 1 | 7, last:
            return "one", last
        case (2, _) | (3, False):
            found = 2
        case _:
            match str(value):
                case "2" | "4":
                    found = 0
                case text if text < "3":
                    found = 1
                case text:
                    return text
    return found


def long_rows(value: int) -> Any:
    return {
        "first_long_name": value + 1, "second_long_name": value + 2, "third_long_name": value + 3,
        "fourth_long_name": value + 4, "fifth_long_name": value + 5, "sixth_long_name": value + 6,
        "seventh_long_name": value + 7, "eighth_long_name": value + 8, "ninth_long_name": value + 9,
        "tenth_long_name": value + 10, "eleventh_long_name": value + 11, "twelfth_long_name": value + 12,
        "thirteenth_long_name": value + 13, "fourteenth_long_name": value + 14, "fifteenth": value,
    }  # fmt: skip


def of_enclosing() -> Any:
    class Pair(NamedTuple):
        one: int
        other: Any

    table, seen_values = {1: "one", 2: "two"}, []

    def name_of(value: int) -> str:
        seen_values.append(value)
        return table.get(value, "many") + str(len(seen_values))

    return lambda value: tuple(Pair(value, name_of(value)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (limited, [1, 2, 2]),
        (lambda value: [value, limited(value, most=1)], [[1, 1], [2, 1], [3, 1]]),
        (Stepping(), STEPS),
        (deletes, [{"all": [5], "row": value} for value in (1, 2, 3)]),
        (imports, [(gcd, [n], "ModuleNotFoundError") for n, gcd in ((1, 1), (2, 2), (3, 3))]),
        (returns_from_the_middle, [(1, 1), (5, 2), [6]]),
        (long_rows, [long_rows(value) for value in (1, 2, 3)]),
        (catches_with, [(None, 1), (2, 2), (1, 3)]),
        (level_of, ["low", "middle", "high"]),
        (returns_or_goes_on, [11, 1, 1]),
        (kind_of, [("one", False), 2, "3"]),
    ],
)
def test_functions_with_usual_statements_are_inlined(
    form: str, function: Any, expected: list[Any]
) -> None:
    ran = run_form(lambda env: seen(env.from_sequence(1, 3).map(function), "out"), form)
    assert ran.records("out") == expected
    assert ("inlined: '" in str(ran.job.vertices)) is (form == "inlined")
    assert "not inlined" not in str(ran.job.vertices)


def priced(factor: float, row: Any, *, unit: str) -> tuple[float, str]:
    return row[0] * factor, unit


class Label(str):
    """A name with a blank is not the name of an attribute in a source."""

    __slots__ = ()

    def __getattr__(self, name: str) -> str:
        return name


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("function", "records", "expected"),
    [
        (itemgetter(1), [(1, 2), [3, 4]], [2, 4]),
        (itemgetter("b", -1), [{"b": 1, -1: 2}], [(1, 2)]),
        (attrgetter("real"), [1, 2.5], [1, 2.5]),
        (attrgetter("a.real", "b"), [Row(a=1, b=2)], [(1, 2)]),
        (methodcaller("split", ",", 1), ["a,b,c"], [["a", "b,c"]]),
        (methodcaller("upper"), ["a"], ["A"]),
        (partial(priced, 2.5, unit="€"), [(2, 0), (4, 0)], [(5.0, "€"), (10.0, "€")]),
        (partial(CountsCalls.bump, CountsCalls()), [1], [1]),
        (partial(itemgetter(0)), ["ab"], ["a"]),
    ],
)
def test_getters_and_partial_functions_are_inlined_if_their_arguments_are_constants(
    form: str, function: Any, records: list[Any], expected: list[Any]
) -> None:
    ran = run_form(lambda env: seen(env.from_collection(records).map(function), "out"), form)
    assert ran.records("out") == expected
    is_constant = not isinstance(function, partial) or function.func is not CountsCalls.bump
    assert ("inlined: '" in str(ran.job.vertices)) is (form == "inlined")
    assert ("not inlined" not in str(ran.job.vertices)) is (is_constant or form != "inlined")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (attrgetter("a b"), "a b"),
        (attrgetter("class"), "class"),
        (methodcaller("split", maxsplit=0), ["x y"]),
        (itemgetter(slice(1)), "x"),
    ],
)
def test_getters_with_other_arguments_are_called(form: str, function: Any, expected: Any) -> None:
    assert results(lambda env: env.from_collection(["x y"]).map(Label).map(function), form) == [
        expected
    ]


@pytest.mark.parametrize("form", FORMS)
def test_a_getter_fails_with_the_error_of_its_call(form: str) -> None:
    with pytest.raises(IndexError, match="index out of range"):
        results(lambda env: env.from_collection([(1,)]).map(itemgetter(1)), form)
    with pytest.raises(TypeError, match="priced"):
        results(lambda env: env.from_collection([(1,)]).map(partial(priced, 2)), form)


@pytest.mark.parametrize("form", FORMS)
def test_variables_of_an_enclosing_function_are_read_where_they_are(form: str) -> None:
    function = of_enclosing()
    ran = run_form(lambda env: seen(env.from_sequence(1, 3).map(function), "out"), form)
    assert ran.records("out") == [(1, "one1"), (2, "two2"), (3, "many3")]
    assert ("inlined: 'name_of'" in str(ran.job.vertices)) is (form == "inlined")
    assert "not inlined" not in str(ran.job.vertices)


def reads_what_a_loop_deleted(value: int) -> int:
    found = value
    for _ in range(value):
        del found
    return found  # noqa: F821 - there is none


def reads_what_a_handler_deleted(value: int) -> int:
    found = value
    try:
        del found
        found = 6 // (value - 2)
    except ZeroDivisionError:
        pass
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("function", [reads_what_a_loop_deleted, reads_what_a_handler_deleted])
def test_a_deleted_variable_is_not_that_of_the_last_record(form: str, function: Any) -> None:
    with pytest.raises(UnboundLocalError):
        results(lambda env: env.from_sequence(0, 3).map(function), form)


class Chooses(Stepping):
    """A method with several statements, which an expression need not call."""

    def map(self, value: Any) -> Any:
        return [self.step(value) if value > 1 else 0, value > 2 and self.step(value), self.steps]


@pytest.mark.parametrize("form", FORMS)
def test_a_function_that_cannot_run_before_the_statement_is_called_where_it_stands(
    form: str,
) -> None:
    found = results(lambda env: env.from_sequence(1, 3).map(Chooses()), form)
    assert found == [[0, False, 0], [-2, False, 2], [-5, -8, 8]]


def test_no_remark_says_that_a_fallback_calls_a_function_that_the_loop_inlines() -> None:
    def draw(env: Any) -> None:
        pairs = env.from_sequence(1, 3).map(lambda x: Row(x % 2, 1), output_type=ROW)
        summed = pairs.key_by(lambda row: row[0]).reduce(lambda a, b: Row(a[0], a[1] + b[1]))
        seen(summed, "out")

    remarks = [text for _, texts in job_of(draw).vertices[-1].remarks for text in texts]
    assert any(text.startswith("inlined: '<lambda>'") for text in remarks)
    assert not any(text.startswith("not inlined") for text in remarks)


ROW = Types.ROW([Types.LONG(), Types.LONG()])
