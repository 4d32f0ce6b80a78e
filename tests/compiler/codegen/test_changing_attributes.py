"""Attributes of function objects that are set in the middle of a batch: generated code sees them at once."""

from __future__ import annotations

import functools
import sys
import textwrap
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Types
from opchain.compiler.codegen.changing_attributes import changing_attributes
from opchain.datastream import KeyedProcessFunction, MapFunction
from opchain.datastream.state import ValueStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet
    from pathlib import Path

EVERY: list[Any] = []


def bump(function: Any) -> None:
    function.factor = 9


class HandsOn(MapFunction[int, int]):
    def __init__(self) -> None:
        self.factor = 3

    def map(self, value: int) -> int:
        if value == 5:
            bump(self)
        return value * self.factor


class HandsOnTheBoundMethod(HandsOn):
    def raised(self) -> None:
        self.factor = 9

    def map(self, value: int) -> int:
        if value == 5:
            list(map(lambda call: call(), [self.raised]))  # noqa: C417
        return value * self.factor


class IsStored(HandsOn):
    def open(self, runtime_context: Any) -> None:
        EVERY.append(self)

    def map(self, value: int) -> int:
        if value == 5:
            bump(EVERY[-1])
        return value * self.factor


class OwnLimit(MapFunction[int, int]):
    LIMIT = 3

    def map(self, value: int) -> int:
        if value == 5:
            widen()
        return value * self.LIMIT


def widen() -> None:
    OwnLimit.LIMIT = 9


class AddedLimit(MapFunction[int, int]):
    ADDED = 3

    def map(self, value: int) -> int:
        if value == 5:
            add()
        return value * self.ADDED


def add() -> None:
    AddedLimit.ADDED += 6


class DeletedLimit(MapFunction[int, int]):
    DELETED = 9

    def __init__(self) -> None:
        self.DELETED = 3

    def map(self, value: int) -> int:
        if value == 5:
            delete(EVERY)
        return value * self.DELETED

    def open(self, runtime_context: Any) -> None:
        EVERY.append(self.itself())

    def itself(self) -> Any:
        return self


def delete(functions: Any) -> None:
    del functions[-1].DELETED


class SetByName(MapFunction[int, int]):
    NAMED = 3

    def map(self, value: int) -> int:
        if value == 5:
            set_by_name()
        return value * self.NAMED


def set_by_name() -> None:
    setattr(SetByName, "NAMED", 9)  # noqa: B010


class SetByProperty(MapFunction[int, int]):
    def __init__(self) -> None:
        self._factor = 3

    @property
    def factor(self) -> int:
        return self._factor

    @factor.setter
    def factor(self, factor: int) -> None:
        self._factor = factor

    def map(self, value: int) -> int:
        if value == 5:
            self.factor = 9
        return value * self._factor


class StartsAgain(MapFunction[int, int]):
    def __init__(self, factor: int = 3) -> None:
        self.factor = factor

    def map(self, value: int) -> int:
        if value == 5:
            self.__init__(9)  # type: ignore[misc]
        return value * self.factor


def counted(method: Any) -> Any:
    @functools.wraps(method)
    def wrapper(self: Any, value: int) -> Any:
        return method(self, value)

    return wrapper


class IsDecorated(MapFunction[int, int]):
    def __init__(self) -> None:
        self.factor = 3

    @counted
    def raises(self, value: int) -> None:
        if value == 5:
            self.factor = 9

    def map(self, value: int) -> int:
        self.raises(value)
        return value * self.factor


class ReplacesAMethod(MapFunction[int, int]):
    def scaled(self, value: int) -> int:
        return value * 3

    def more(self, value: int) -> int:
        return value * 9

    def map(self, value: int) -> int:
        if value == 5:
            self.scaled = self.more  # type: ignore[method-assign]
        return self.scaled(value)


class Static:
    @staticmethod
    def scaled(value: int) -> int:
        return value * 3

    @staticmethod
    def more(value: int) -> int:
        return value * 9


class ReplacesAStaticMethod(MapFunction[int, int]):
    def map(self, value: int) -> int:
        if value == 5:
            Static.scaled = Static.more  # type: ignore[method-assign]
        return Static.scaled(value)


class OfType(MapFunction[int, int]):
    OF_TYPE = 3

    def map(self, value: int) -> int:
        if value == 5:
            widen_type(type(self))
        return value * self.OF_TYPE


def widen_type(kind: Any) -> None:
    name = "OF_" + "TYPE"
    type.__setattr__(kind, name, 9)


CHANGES: list[Callable[[], MapFunction[int, int]]] = [
    *(HandsOn, HandsOnTheBoundMethod, IsStored, OwnLimit, AddedLimit, DeletedLimit, SetByName),
    *(SetByProperty, StartsAgain, IsDecorated, ReplacesAMethod, ReplacesAStaticMethod, OfType),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", CHANGES)
def test_an_attribute_that_is_set_in_a_batch_is_seen_at_once(
    kind: Any, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for changed in (OwnLimit, AddedLimit, SetByName, OfType):
        for name in [name for name in vars(changed) if name.isupper()]:
            monkeypatch.setattr(changed, name, 3)  # and back, after the test
    monkeypatch.setattr(Static, "scaled", staticmethod(lambda value: value * 3))

    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 8).map(kind()), "rows")

    assert run_form(draw, form).records("rows") == [3, 6, 9, 12, 45, 54, 63, 72]


@pytest.mark.parametrize("form", FORMS)
def test_a_constant_that_another_operator_sets_is_seen_at_once(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OwnLimit, "LIMIT", 3)

    def widened(value: int) -> int:
        if value == 3:
            widen()
        return value

    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 4).map(widened).map(OwnLimit()), "rows")

    assert run_form(draw, form).records("rows") == [3, 6, 27, 36]


class Replaced(KeyedProcessFunction[Any, Any, Any]):
    """Changes places of two states."""

    def open(self, runtime_context: Any) -> None:
        self.one = runtime_context.get_state(ValueStateDescriptor("one", Types.LONG()))
        self.other = runtime_context.get_state(ValueStateDescriptor("other", Types.LONG()))

    def swap(self, *_more: Any) -> None:
        self.one, self.other = self.other, self.one

    def process_element(self, value: Any, ctx: Any) -> Any:
        if value == 5:
            self.swap()
        self.one.update((self.one.value() or 0) + value)
        yield self.one.value()


@pytest.mark.parametrize("form", FORMS)
def test_a_state_that_is_replaced_in_a_batch_is_seen_at_once(form: str) -> None:
    def draw(env: Any) -> None:
        keyed = env.from_sequence(1, 7).key_by(lambda value: 0)
        seen(keyed.process(Replaced()), "rows")

    assert run_form(draw, form).records("rows") == [1, 3, 6, 10, 5, 11, 18]


def run_in(module: ModuleType, text: str, tmp_path: Path) -> None:
    """Runs a text as the file of a module."""
    path = tmp_path / f"{module.__name__}.py"
    path.write_text(textwrap.dedent(text))
    module.__file__ = str(path)
    exec(compile(path.read_text(), str(path), "exec"), vars(module))  # noqa: S102


def changing_in(text: str, tmp_path: Path, other: str = "", **how: bool) -> AbstractSet[str] | None:
    """What may change in the class `Fn` of a module, beside another one that imports it."""
    names = {"fn_of_test": text, "other_of_test": f"from fn_of_test import Fn\n{other}"}
    try:
        for name, content in names.items():
            sys.modules[name] = module = ModuleType(name)
            run_in(module, content, tmp_path)
        return changing_attributes(vars(sys.modules["fn_of_test"])["Fn"], **how)
    finally:
        for name in names:
            sys.modules.pop(name, None)


FIXED = """
class Fn:
    LIMIT = 3
    def __init__(self, x):
        self.x = x
        super().__init__()
    def map(self, value):
        value["at"] = isinstance(self, Fn), type(self).__name__, self is value
        return value, self.x, self.LIMIT, [x for x in value if x == self.x]
    @classmethod
    def of(cls, x):
        return cls.LIMIT
class Other:
    def __init__(self, x):
        self.x = self.y = x
    def later(self):
        self.x = 5
        object.__setattr__(self, "x", 7)
"""


def test_attributes_that_only_the_constructor_sets_do_not_change(tmp_path: Path) -> None:
    found = changing_in(FIXED, tmp_path)
    assert found is not None
    assert not found & {"LIMIT", "x", "map"}


@pytest.mark.parametrize("has_it", [False, True])
def test_for_a_module_outside_sys_modules_only_its_users_are_searched(
    has_it: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, other = ModuleType("fn_of_test"), ModuleType("other_of_test")
    run_in(alone, FIXED, tmp_path)
    monkeypatch.setitem(sys.modules, "other_of_test", other)
    vars(other)["known"] = alone if has_it else None
    run_in(other, "def f(one):\n    one.x = 4", tmp_path)
    assert ("x" in (changing_attributes(vars(alone)["Fn"]) or ())) is has_it


@pytest.mark.parametrize(
    ("statement", "changes", "changes_states"),
    [
        ("one.x += 4", True, False),
        ("one.at.x -= one.x", True, False),
        ("one.x = 4 + one.x", True, False),
        ("one.x = one.at.x + 4", True, True),
        ("one.x = two.x = one.x + 4", True, True),
        ("one.x = 4", True, True),
    ],
)
def test_a_sum_is_never_stored_instead_of_a_state(
    statement: str, *, changes: bool, changes_states: bool, tmp_path: Path
) -> None:
    other = f"def f(one, two):\n    {statement}"
    for of_states, expected in ((False, changes), (True, changes_states)):
        found = changing_in(FIXED, tmp_path, other, of_states=of_states)
        assert found is not None
        assert ("x" in found) is expected


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ("def f(one):\n    one.x = 4", "x"),
        ("def f(one):\n    del one.x", "x"),
        ("def f(one):\n    one.x -= 4", "x"),
        ("def f(one):\n    one.x: int = 4", "x"),
        ("def f(one):\n    for one.x in range(3): pass", "x"),
        ("def f(one):\n    delattr(one, 'x')", "x"),
        ("def f(one):\n    object.__setattr__(one, 'x', 3)", "x"),
        ("class A:\n    @staticmethod\n    def f(one):\n        one.x = 1", "x"),
        (
            "class A:\n    @staticmethod\n    def f():\n        def g(one):\n            one.x = 1",
            "x",
        ),
        ("class A:\n    def f(self):\n        def g(self):\n            self.x = 1", "x"),
        ("class A:\n    @print\n    def f(self):\n        self.x = 1", "x"),
        ("class A:\n    def f(self, one):\n        one.x = 1", "x"),
        ("def f(one, name):\n    setattr(one, name, 3)", None),
        ("def f(one):\n    one.__dict__['x'] = 3", None),
        ("def f(one):\n    one.__dict__.update(x=3)", None),
        ("def f(one):\n    names = vars(one)", None),
        ("f = setattr", None),
        ("class Fn(Fn):\n    def f(self):\n        print(self)", None),
        ("class Fn(Fn):\n    def f(self):\n        return lambda: [self]", None),
        ("class Fn(Fn):\n    def f(self):\n        one = self\n        one.x = 3", None),
        ("class Fn(Fn):\n    def f(self):\n        print(self.__class__)", None),
        ("class Fn(Fn):\n    @classmethod\n    def f(cls):\n        print(cls)", None),
        ("class Fn(Fn):\n    def f(self):\n        vars(self)['x'] = 3", None),
    ],
)
def test_attributes_that_other_code_sets_are_found_as_changing(
    more: str, name: str | None, tmp_path: Path
) -> None:
    for place in ("file", "module that imports the class"):
        here, there = (f"{FIXED}\n{more}\n", "") if place == "file" else (FIXED, more)
        if "Fn(" in more and there:
            continue
        (tmp_path / place).mkdir()
        found = changing_in(here, tmp_path / place, there)
        assert found is None if name is None else name in (found or ())
