from __future__ import annotations

import functools
import pickle
import struct
import threading
from typing import Any

import cloudpickle
import pytest

from opchain.datastream import MapFunction
from opchain.runtime.shipping.functions import find_unpicklable

HEADER = struct.Struct("<i")  # cannot be pickled


class Client:
    def __init__(self) -> None:
        self.name = "plain"
        self.lock = threading.Lock()

    def ask(self, value: int) -> int:
        return value


class Slotted:
    __slots__ = ("fine", "lock")

    def __init__(self) -> None:
        self.fine = 1
        self.lock = threading.Lock()


class Refusing:
    def __reduce__(self) -> Any:
        raise RuntimeError("not me")


class KeepsItself:
    def __init__(self) -> None:
        self.me = self
        self.lock = threading.Lock()


def capturing(value: Any) -> Any:
    return lambda record: (record, value)


def with_default(record: int, client: Any = Client()) -> Any:  # noqa: B008 - tested
    return record, client


CASES = {
    "a captured variable": (capturing(threading.Lock()), ["captured variable 'value'"]),
    "an attribute of one": (
        capturing(Client()),
        ["captured variable 'value'", "attribute 'lock'"],
    ),
    "a slot": (capturing(Slotted()), ["captured variable 'value'", "attribute 'lock'"]),
    "a global": (lambda record: [HEADER.pack(record)], ["global variable 'HEADER'"]),
    "a global of a nested function": (
        lambda records: [HEADER.pack(record) for record in records],
        ["global variable 'HEADER'"],
    ),
    "an item of a dict": (
        capturing({"a": 1, "b": threading.Lock()}),
        ["captured variable 'value'", "item ['b']"],
    ),
    "an item of a list": (
        capturing([1, (2, threading.Lock())]),
        ["captured variable 'value'", "item [1]", "item [1]"],
    ),
    "a partial's argument": (
        functools.partial(capturing, threading.Lock()),
        ["argument 0 of its partial()"],
    ),
    "a partial's keyword": (
        functools.partial(capturing, value=threading.Lock()),
        ["argument 'value' of its partial()"],
    ),
    "a bound method": (Client().ask, ["the object of its method 'ask'", "attribute 'lock'"]),
    "the value itself": (threading.Lock(), []),
    "an object that refuses": (capturing(Refusing()), ["captured variable 'value'"]),
    "an object in a circle": (KeepsItself(), ["attribute 'lock'"]),
}


@pytest.mark.parametrize(("function", "steps"), CASES.values(), ids=CASES.keys())
def test_the_path_to_the_unpicklable_object_is_named(function: Any, steps: list[str]) -> None:
    found = find_unpicklable(function, cloudpickle.dumps)
    assert found is not None
    assert list(found.steps) == steps
    assert found.way == ", ".join(steps)
    with pytest.raises((TypeError, RuntimeError, pickle.PicklingError)):
        cloudpickle.dumps(found.value)


def test_an_unpicklable_global_of_a_base_class_is_found() -> None:
    class Saving(MapFunction):
        def save(self, record: int) -> bytes:
            return HEADER.pack(record)

    class Sink(Saving):
        def map(self, record: int) -> bytes:
            return self.save(record)

    found = find_unpicklable(Sink(), cloudpickle.dumps)
    assert found is not None
    assert found.value is HEADER
    assert found.way == (
        "its class, base class 'Saving', class attribute 'save', global variable 'HEADER'"
    )


def test_an_unpicklable_default_of_a_parameter_is_found() -> None:
    local = type(with_default)(with_default.__code__, {}, "local", with_default.__defaults__)
    local.__module__ = "__main__"
    found = find_unpicklable(local, cloudpickle.dumps)
    assert found is not None
    assert found.steps == ("the default of a parameter", "attribute 'lock'")


@pytest.mark.parametrize("value", [1, len, capturing(3), Client, with_default])
def test_nothing_is_found_in_picklable_objects(value: Any) -> None:
    assert find_unpicklable(value, cloudpickle.dumps) is None


def test_the_reason_is_the_error_of_pickle() -> None:
    found = find_unpicklable(capturing(Refusing()), cloudpickle.dumps)
    assert found is not None
    assert found.reason == "RuntimeError: not me"


def test_a_memory_error_is_raised_and_not_reported_as_unpicklable() -> None:
    def dump(_: Any) -> bytes:
        raise MemoryError

    with pytest.raises(MemoryError):
        find_unpicklable(1, dump)
