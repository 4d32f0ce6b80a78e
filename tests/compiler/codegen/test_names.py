from __future__ import annotations

import ast
import builtins
import inspect
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Row, Types
from opchain.compiler import codegen
from opchain.compiler.codegen.displays import MAKERS
from opchain.compiler.codegen.internal_functions import INTERNAL_FUNCTIONS, SETS_KEY, TABLES
from opchain.compiler.codegen.names import Names, readable, stem
from opchain.datastream import (
    AggregateFunction,
    CoMapFunction,
    MapFunction,
    ProcessFunction,
)


class ParseLine(MapFunction[str, str]):
    def map(self, value: str) -> str:
        return value


def parse(line: str) -> str:
    return line


def value(line: str) -> str:
    return line


def field_0(line: str) -> str:
    return line


def row(number: int) -> Any:
    made = Row(number=number)
    return made  # noqa: RET504 - it is not to be written into the loop


class Column(CoMapFunction[int, int, int]):
    def map1(self, value: int) -> int:
        return value

    def map2(self, value: int) -> int:
        return -value


def unnamed(function: Any) -> Any:
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (parse, "parse"),
        (lambda x: x, "flat_map"),
        (ParseLine(), "parse_line"),
        (value, "value_fn"),
        (field_0, "my_field_0"),
        (str.upper, "upper"),
        (None, "flat_map"),
    ],
)
def test_generated_names_use_the_name_of_the_function(function: Any, name: str) -> None:
    assert readable(function, "flat map") == name


@pytest.mark.parametrize(
    ("kind", "name"), [("2nd", "call_2nd"), ("class", "call_class"), ("é", "call"), ("", "call")]
)
def test_an_invalid_identifier_becomes_a_valid_one(kind: str, name: str) -> None:
    assert readable(None, kind) == name


def test_a_name_cannot_be_bound_to_two_objects() -> None:
    names = Names()
    assert names.bind("parse_1", "call", 1) == names.bind("parse_1", "call", 1)
    with pytest.raises(AssertionError, match="parse_1 stands for"):
        names.bind("parse_1", "call", 2)


def test_functions_with_the_same_name_get_different_names() -> None:
    names = Names()
    found = [names.bind_function(parse, "key", "to_0", what) for what in ("key", "reduce", "key")]
    assert found == ["parse_to_0", "parse_to_0_too", "parse_to_0"]


def declared(env: Any) -> None:
    rows = env.from_sequence(1, 3).map(row, Types.ROW_NAMED(["number"], [Types.LONG()]))
    seen(rows.map(lambda made: made[0]), "out")


def by_fields(env: Any) -> None:
    numbers = env.from_sequence(1, 3).connect(env.from_sequence(4, 6)).map(Column())
    keyed = numbers.map(lambda x: (x % 2, x, 1)).key_by(lambda fields: fields[0])
    seen(keyed.reduce(lambda a, b: (a[0], a[1] + b[1], 1)), "out")


def decorated(env: Any) -> None:
    keyed = env.from_sequence(1, 9).key_by(unnamed(lambda x: x % 3))
    seen(keyed.reduce(unnamed(lambda a, b: a + b)), "out")


@pytest.mark.parametrize("draw", [declared, by_fields, decorated])
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_function_may_have_any_name(draw: Any, mode: str) -> None:
    runs = [run_form(draw, form, mode=mode).records("out") for form in FORMS]
    assert runs[0]
    assert all(run == runs[0] for run in runs)


ABSENT = 5
op_1 = "a global name of the program"
emit_1 = table_1 = 7


@pytest.mark.parametrize("form", FORMS)
def test_global_names_of_a_program_may_equal_names_of_generated_code(form: str) -> None:
    def draw(env: Any) -> None:
        numbers = env.from_collection([1, 2], Types.INT())
        seen(numbers.map(lambda number: (number, op_1, emit_1)), "map")
        sums = numbers.key_by(lambda number: 0).reduce(lambda a, b: a + b + ABSENT)
        seen(sums.map(lambda sum_0: sum_0 + table_1), "sums")

    ran = run_form(draw, form)
    assert ran.records("map") == [(1, op_1, 7), (2, op_1, 7)]
    assert ran.records("sums") == [8, 15]


def named(name: str) -> Any:
    """A function of this name."""

    def function() -> None: ...

    function.__name__ = name
    return function


def words_of(text: str) -> set[str]:
    """The first words of names that a module of the code generator writes: of `f"held_{index}"`, and in templates."""
    words, given = set(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            given |= {keyword.arg for keyword in node.keywords}
        if isinstance(node, ast.JoinedStr):
            for part, then in zip(node.values, node.values[1:], strict=False):
                if isinstance(part, ast.Constant) and isinstance(then, ast.FormattedValue):
                    words |= set(re.findall(r"(?<![\w.])([a-z]\w*)_$", part.value))
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "\n    " in node.value
        ):
            try:
                template = ast.parse(inspect.cleandoc(node.value))
            except SyntaxError:
                continue  # a docstring
            words |= {item.id for item in ast.walk(template) if isinstance(item, ast.Name)}
    words = {re.sub(r"(_\d+)+$", "", word) for word in words - given}
    return {word for word in words if word.islower() and not hasattr(builtins, word)}


OTHERS = {"call", "for", "my", "of", "second", "time", "to", "value", "values"}
"""Parts of sentences, and the names that a template has for the record and its time."""


def test_functions_of_users_never_get_a_name_of_generated_code() -> None:
    (folder,) = map(Path, codegen.__path__)
    words = set.union(*(words_of(path.read_text("utf-8")) for path in folder.rglob("*.py")))
    assert len(words) > 80

    assert {word for word in words - OTHERS if readable(named(word), "map") == word} == set()


def stems_of(text: str) -> set[str]:
    """The stems by which a module recognizes internal names: what it compares `stem(...)` with."""
    tree, known, found = ast.parse(text), {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known[node.targets[0].id] = node.value
    given = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("stem("):
            given += node.comparators
    for part in given:
        whole = known.get(ast.unparse(part), part)
        found |= {item.value for item in ast.walk(whole) if isinstance(item, ast.Constant)}
    return found


def test_functions_of_users_never_get_a_name_that_rules_recognize() -> None:
    (folder,) = map(Path, codegen.__path__)
    modules = [path.read_text("utf-8") for path in folder.rglob("*.py")]
    found = {word for text in modules for word in stems_of(text)}
    assert len(found) > 8
    found |= {*INTERNAL_FUNCTIONS, *SETS_KEY, *TABLES, *MAKERS, "self_of"}
    found -= {"timestamp", "zip"}  # arguments of the functions, and a builtin

    for word in found:
        for name in (word, f"{word}_to", f"{word}_3", f"{word}_3_bots"):
            for each in (f"{readable(named(name), 'map')}_0", readable(named(name), "map")):
                assert stem(each) != word, name
        assert stem(f"{readable(named(f'{word}_bots'), 'map')}_0") != word


@dataclass
class CountForPage:
    page: int
    count: int


def refuse_bots(value: Any) -> Any:
    with Path("/dev/null").open():
        return sorted(map(str, value))


class RefusesLate(ProcessFunction[Any, Any]):
    def refuse_late(self, number: int) -> bool:
        with Path("/dev/null").open():
            return number > 3

    def process_element(self, value: Any, ctx: Any) -> Any:
        if self.refuse_late(value[1]):
            return
        yield value[0]


@pytest.mark.parametrize("form", FORMS)
def test_functions_may_be_called_as_functions_of_operators(form: str) -> None:
    def draw(env: Any) -> None:
        records = env.from_sequence(0, 5).map(lambda x: (x % 3, x, x * 2))
        triples = records.key_by(lambda t: t[0])
        seen(triples.map(lambda t: CountForPage(t[0], t[1])), "counts")
        seen(triples.filter(lambda t: t[2] > 4).map(refuse_bots), "texts")
        seen(triples.process(RefusesLate()), "early")

    run = run_form(draw, form)
    assert run.records("counts") == [CountForPage(x % 3, x) for x in range(6)]
    assert run.records("texts") == [["0", "3", "6"], ["1", "4", "8"], ["10", "2", "5"]]
    assert run.records("early") == [0, 1, 2, 0]


def counts(a: Any, b: Any) -> Any:
    with Path("/dev/null").open():  # so it is called
        return a[0], a[1] + b[1]


def sent_key(value: Any) -> Any:
    with Path("/dev/null").open():
        return value


class Carried(AggregateFunction[Any, Any, Any]):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        with Path("/dev/null").open():
            return accumulator + value[1]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, a: Any, b: Any) -> Any:
        return a + b


@pytest.mark.parametrize("form", FORMS)
def test_functions_may_be_called_as_variables_of_generated_code(form: str) -> None:
    def draw(env: Any) -> None:
        pairs = env.from_sequence(1, 6).map(lambda x: (x % 2, x))
        seen(pairs.key_by(lambda p: p[0]).count_window(3).reduce(counts), "counts")
        keyed = pairs.rebalance().map(sent_key).key_by(lambda p: random.randint(0, 0))
        seen(keyed.map(lambda p: p[1]), "keys")
        seen(keyed.count_window(6).aggregate(Carried()), "sums")

    run = run_form(draw, form)
    assert run.records("counts") == [(1, 9), (0, 12)]
    assert run.records("keys") == [1, 2, 3, 4, 5, 6]
    assert run.records("sums") == [21]
