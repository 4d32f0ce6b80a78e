"""Results of functions with a declared row type become Rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Configuration, Row, Types
from opchain.datastream import KeyedProcessFunction, ProcessFunction, StreamExecutionEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable

PET = Types.ROW_NAMED(["kind", "age"], [Types.STRING(), Types.INT()])
ROWS = [Row(kind="cat", age=1), Row(kind="cat", age=2)]


@dataclass
class Pet:
    kind: str
    age: int


class Process(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield "cat", value


class Named(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        yield Row(value["kind"], value.age)


RETURNED: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda ages: ages.map(lambda age: ("cat", age), PET),
    "list": lambda ages: ages.map(lambda age: ["cat", age], PET),
    "row without names": lambda ages: ages.map(lambda age: Row("cat", age), PET),
    "dict": lambda ages: ages.map(lambda age: {"age": age, "kind": "cat"}, PET),
    "object": lambda ages: ages.map(lambda age: Pet("cat", age), PET),
    "flat map": lambda ages: ages.flat_map(lambda age: [("cat", age)], PET),
    "process": lambda ages: ages.process(Process(), PET),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", RETURNED)
def test_rows_have_the_declared_field_names(form: str, case: str) -> None:
    def draw(env: Any) -> None:
        pets = RETURNED[case](env.from_collection([1, 2]))
        seen(pets, "chained")
        seen(pets.key_by(lambda pet: pet.kind).process(Named(), PET), "keyed")
        seen(pets.filter(lambda pet: pet.age > 0), "filtered")

    ran = run_form(draw, form)
    for name in ("chained", "keyed", "filtered"):
        assert sorted(ran.records(name), key=repr) == ROWS


@pytest.mark.parametrize("form", FORMS)
def test_a_reduce_has_the_type_of_its_input(form: str) -> None:
    def draw(env: Any) -> None:
        pets = env.from_collection([("cat", 1), ("cat", 1)], PET)
        oldest = pets.key_by(lambda pet: pet.kind).reduce(lambda a, b: (a.kind, a.age + b.age))
        seen(oldest, "out")

    assert run_form(draw, form).records("out") == ROWS


def test_print_shows_rows_as_the_previous_function_returned_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configuration = Configuration().set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    inner = Types.ROW([Types.ROW([Types.INT()]), Types.DOUBLE()])
    rows = env.from_collection([1]).map(lambda age: Row(Row(age), age), inner)
    rows.print("chained")
    env.from_collection([1]).map(lambda age: Row(Row(age), age), inner).rebalance().print("sent")
    env.from_collection([1]).map(lambda age: Row(age=age, kind="cat"), PET).print("order")
    env.execute()
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "chained> +I[<Row(1)>,1]",
        "order> +I[1,cat]",
        "sent> +I[Row(f0=1),1.0]",
    ]
