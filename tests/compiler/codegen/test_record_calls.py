"""Methods of records whose class is known are inlined. Results and errors stay the same."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import pytest
from forms import FORMS, failure_of, job_of, notes_of, run_form, run_job, seen

from opchain.datastream.functions import KeyedProcessFunction, MapFunction
from opchain.datastream.state import ValueStateDescriptor


@dataclass
class Order:
    user: int
    page: str
    price: float
    tags: Any = None

    @classmethod
    def from_number(cls, number: int) -> Order:
        return cls(number % 5, f"/p/{number}", number * 1.5, [number, Part(number)])

    def key(self) -> int:
        return self.user

    def is_valid(self) -> bool:
        return self.price > 10 and self.page != ""

    def taxed(self, rate: float) -> Order:
        return Order(self.user, self.page, self.price * (1 + rate), self.tags)

    def discounted(self) -> Order:
        if self.price > 50:
            return Order(self.user, self.page, self.price - 5, self.tags)
        return self

    def raised(self) -> Order:
        self.price += 1
        return self

    def inverse(self) -> float:
        return 1 / (self.price - 15)

    def text(self) -> str:
        return json.dumps({"user": self.user, "bucket": self.bucket})

    @property
    def bucket(self) -> int:
        return int(self.price // 10)


@dataclass
class Part:
    number: int


class Pair(NamedTuple):
    user: int
    price: float

    def key(self) -> int:
        return self.user

    def taxed(self, rate: float) -> Pair:
        return self._replace(price=self.price * (1 + rate))

    @property
    def bucket(self) -> int:
        return int(self.price // 10)


class Own(NamedTuple):
    """Has another method in place of one that the library generates."""

    user: int


Own._replace = lambda self, **changes: ("own", self.user, changes)  # type: ignore[assignment, method-assign]


class Making(MapFunction[Any, Any]):
    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def map(self, value: int) -> Any:
        return self.kind(value, given)


def given() -> str:
    return "given"


class Plain:
    def __init__(self, number: int) -> None:
        self.number = number
        if number % 2:
            self.named = lambda: "of the object"  # type: ignore[method-assign]

    def named(self) -> str:
        return "of the class"

    def doubled(self, plus: int = 1) -> int:
        return self.number * 2 + plus

    @property
    def half(self) -> int:
        return self.number // 2


class Shaped(MapFunction[Any, Any]):
    """Has the class of its records in an attribute."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def map(self, value: Any) -> Any:
        return self.kind(**json.loads(value))


class Best(KeyedProcessFunction[Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.best = runtime_context.get_state(ValueStateDescriptor("best"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        taxed = value.taxed(0.5)
        if (self.best.value() or 0) < taxed.price:
            self.best.update(taxed.price)
            yield taxed.key(), taxed.price, value.bucket


def orders(env: Any) -> Any:
    return env.from_sequence(0, 60).map(Order.from_number)


def methods(env: Any) -> None:
    valid = orders(env).filter(lambda order: order.is_valid())
    seen(valid.map(lambda order: order.taxed(0.25)).map(lambda order: order.text()), "taxed")
    seen(valid.map(lambda order: order.discounted()).map(lambda order: order.price), "discounted")
    seen(orders(env).map(lambda order: order.raised().key()), "raised")
    seen(orders(env).map(lambda order: (order.raised(), order.price)), "changed")
    seen(orders(env).key_by(lambda order: order.key()).map(lambda order: order.bucket), "keyed")
    seen(orders(env).key_by(lambda order: order.key()).process(Best()), "best")


def inlined(env: Any) -> None:
    valid = orders(env).filter(lambda order: order.is_valid()).map(lambda order: order.taxed(0.5))
    seen(valid.key_by(lambda order: order.key()).map(lambda order: order.text()), "texts")


def named_tuples(env: Any) -> None:
    pairs = env.from_sequence(0, 60).map(lambda x: Pair(x % 5, x * 2.5))
    taxed = pairs.map(lambda pair: pair.taxed(0.5)).key_by(lambda pair: pair.key())
    seen(taxed.map(lambda pair: (pair.bucket, pair)), "taxed")
    seen(pairs.map(lambda pair: pair._asdict()), "dictionaries")
    seen(pairs.map(lambda pair: json.dumps(pair._asdict())), "texts")
    seen(pairs.map(lambda pair: pair._replace(user=int(pair.price))), "replaced")
    own = env.from_sequence(0, 9).map(lambda x: Own(x))  # noqa: PLW0108 - as users write it
    seen(own.map(lambda record: (record._replace(user=1), record._asdict())), "own")


def copies(env: Any) -> None:
    seen(orders(env).map(lambda order: asdict(order)), "dictionaries")  # noqa: PLW0108 - as users write it
    seen(orders(env).map(lambda order: json.dumps(dataclasses.asdict(order))), "texts")
    seen(orders(env).map(lambda order: replace(order, price=order.price * 2)), "replaced")
    seen(orders(env).map(lambda order: asdict(order, dict_factory=list)), "lists")
    priced = orders(env).map(lambda order: replace(order, price=order.raised().price))
    seen(priced.map(lambda order: replace(order, user=0, page="")), "raised")


def plain(env: Any) -> None:
    objects = env.from_sequence(0, 20).map(lambda x: Plain(x))  # noqa: PLW0108 - as users write it
    seen(objects.map(lambda each: (each.doubled(plus=2), each.half, each.named())), "results")


def shaped(env: Any) -> None:
    texts = env.from_sequence(0, 60).map(lambda x: f'{{"user": {x % 5}, "price": {x}.5}}')
    pairs = texts.map(Shaped(Pair)).key_by(lambda pair: pair.user)
    seen(pairs.map(lambda pair: pair), "pairs")
    seen(texts.map(Shaped(Counter)).map(lambda counts: counts["price"]), "others")


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("draw", [methods, named_tuples, copies, plain, shaped])
def test_methods_of_records_give_the_same_results_in_each_form(draw: Any, mode: str) -> None:
    ran = {form: run_form(draw, form, mode=mode) for form in FORMS}
    for form in FORMS[1:]:
        assert ran[form].outcome.committables == ran["interpreted"].outcome.committables
        assert ran[form].counters() == ran["interpreted"].counters()


def fast_source(draw: Any) -> str:
    sources = [str(vertex.source) for vertex in job_of(draw).vertices]
    return "\n".join(source.split("def fallback_0")[0] for source in sources)


def test_methods_of_records_are_inlined_before_and_after_an_exchange() -> None:
    source = fast_source(inlined)
    for name in ("key", "is_valid", "taxed", "text", "bucket"):
        assert f".{name}" not in source
        assert f"order_{name}" not in source
    assert "dumps(" not in source


def test_methods_of_other_classes_are_inlined() -> None:
    source = fast_source(plain)
    assert "value_1.number * 2 + 2, value_1.number // 2, value_1.named()" in source


def test_copy_of_a_record_becomes_copies_of_its_fields() -> None:
    source = fast_source(copies)
    assert source.count("plain_value(") == 2 * 4
    assert "_asdict" not in fast_source(named_tuples).partition("own")[0]


def test_a_record_in_an_attribute_of_a_record_is_inlined() -> None:
    source = fast_source(shaped)
    assert ".kind(" not in source
    assert source.count("= kind_") == 2


def test_a_method_that_the_program_replaces_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(env: Any) -> None:
        seen(orders(env).map(lambda order: (order.key(), order.bucket)), "keys")

    job = job_of(draw)
    assert "order_key" not in str(job.vertices[0].source).split("def fallback_0")[0]
    count = len(run_job(job).records("keys"))
    monkeypatch.setattr(Order, "key", lambda _: "replaced")
    monkeypatch.setattr(Order, "bucket", property(lambda _: "replaced"))
    assert run_job(job).records("keys") == [("replaced", "replaced")] * count


def test_an_error_of_a_method_names_its_line_and_its_operator() -> None:
    def draw(env: Any) -> None:
        seen(orders(env).map(lambda order: order.inverse()), "inverses")

    errors = [failure_of(draw, form) for form in ("interpreted", "inlined")]
    assert {type(error) for error in errors} == {ZeroDivisionError}
    places = {notes_of(error).partition(" at record")[0] for error in errors}
    assert len(places) == 1
    assert "test_record_calls.py" in places.pop()


def with_default() -> Any:
    return "default"


@dataclass
class Shadowed:
    """A field whose default is a function, and a method that an object may have itself."""

    number: int
    made: Any = with_default

    def own(self) -> str:
        return "of the class"


@dataclass
class Finished(Shadowed):
    made: Any = with_default

    def __post_init__(self) -> None:
        self.number += 1

    def own(self) -> str:
        return "of the class"


@pytest.mark.parametrize("kind", [Shadowed, Finished])
def test_an_attribute_of_an_object_hides_the_method_of_its_class(kind: Any) -> None:
    def shadow(record: Any) -> Any:
        record.own = lambda: "of the object"
        return record

    def draw(env: Any) -> None:
        records = env.from_sequence(0, 3).map(Making(kind))
        seen(records.map(lambda record: (record.made(), record.own())), "results")
        seen(records.map(shadow).map(lambda record: record.own()), "shadowed")

    ran = run_form(draw)
    assert ran.records("results") == [("given", "of the class")] * 4
    assert ran.records("shadowed") == ["of the object"] * 4
