from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import Row
from opchain.runtime.errors import UnpicklableRecordError
from opchain.runtime.records.function_pickle import function_pickler
from opchain.runtime.records.record_pickle import (
    dump_flat,
    dump_records,
    looks_flat,
    unpicklable_record,
)


class Refuses:
    """A record that cannot be pickled."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"Refuses({self.number})"

    def __reduce__(self) -> Any:
        raise ValueError("no way")


def cycle() -> list[Any]:
    """A list that contains itself."""
    outer: list[Any] = []
    outer.append(outer)
    return outer


@settings(deadline=None)
@given(st.lists(st.booleans()))
def test_the_first_record_that_cannot_be_pickled_is_found(offends: list[bool]) -> None:
    records = [Refuses(number) if bad else number for number, bad in enumerate(offends)]
    error = unpicklable_record(records)
    if True in offends:
        assert error is not None
        assert error.record == f"Refuses({offends.index(True)})"
        assert error.reason == "ValueError: no way"
    else:
        assert error is None


def test_a_class_of_the_main_program_is_pickled_by_value() -> None:
    # As on an executor: the class names the module __main__, which has no such class there.
    click = type("Click", (), {"__module__": "__main__", "user": "ada"})
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(click(), 5)
    (loaded,) = pickle.loads(dump_records([click()]))
    # The class itself, not a copy: functions of the program compare with this class.
    assert type(loaded) is click


def test_without_cloudpickle_the_error_of_pickle_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    function_pickler.cache_clear()
    assert pickle.loads(dump_records([1, "two"])) == [1, "two"]
    click = type("Click", (), {"__module__": "__main__"})
    with pytest.raises(pickle.PicklingError, match="Click"):
        dump_records([click()])


def test_an_unpicklable_record_error_can_be_pickled() -> None:
    error = UnpicklableRecordError("(1, <lock>)", "TypeError: no", "'map' (clicks.py:3)")
    copied = pickle.loads(pickle.dumps(error))
    assert str(copied) == str(error)
    assert str(error).startswith("'map' (clicks.py:3): the record (1, <lock>) cannot be pickled")


def test_a_record_with_a_lock_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        dump_records([threading.Lock()])


def test_the_wire_format_imports_the_standard_library_only() -> None:
    code = (
        "import sys\n"
        "import opchain.runtime.records.wire, opchain.runtime.task.input.input_gate\n"
        "import opchain.runtime.records.buffer_store\n"
        "print({'cloudpickle', 'numpy', 'networkx', 'pydantic', 'pyspark'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "set()"


FLAT = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()


@given(st.lists(FLAT | st.tuples(FLAT, FLAT), min_size=1))
def test_flat_records_are_pickled_and_unpickled(records: list[Any]) -> None:
    assert looks_flat(records)
    data = dump_flat(records)
    assert data is not None
    assert repr(pickle.loads(data)) == repr(records)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(Decimal(1), id="instance of a class"),
        pytest.param(("a", Refuses(1)), id="instance in a tuple"),
        pytest.param(cycle(), id="cycle"),
        pytest.param(type("Text", (str,), {"__module__": "__main__"})("a"), id="derived class"),
    ],
)
def test_records_that_are_not_flat_are_left_to_the_general_pickler(record: Any) -> None:
    assert dump_flat(["a", record, "b"]) is None
    assert not looks_flat([record])
    # Only three records are checked.
    assert looks_flat(["a", record, "b", "c", "d"])


def test_lists_among_flat_records_are_unpickled_equal() -> None:
    records = ["a", {"b": [1, (2.5, None)]}, {3}, "c", "d"]
    data = dump_flat(records)
    assert data is not None
    assert pickle.loads(data) == records


def test_an_empty_batch_looks_flat() -> None:
    assert looks_flat([])
    assert not looks_flat([[1]])


class Click:
    def __init__(self, user: Any) -> None:
        self.user = user


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda bad: bad, "a generator: return a list instead, or use flat_map to emit each value"),
        (lambda bad: ("a", bad), "field 1: a generator: return a list instead"),
        (lambda bad: ("a", {"k": [1, bad]}), "field 1, value of 'k', field 1: a generator: return"),
        (lambda bad: Row(user=1, words=bad), "field 'words': a generator"),
        (lambda bad: Click([bad]), "attribute 'user', field 0: a generator"),
    ],
)
def test_the_error_names_the_field_that_holds_a_generator(make: Any, said: str) -> None:
    error = unpicklable_record([("fine",), make(word for word in "ab")])
    assert error is not None
    assert error.reason.startswith(said)


def test_a_record_that_contains_itself_and_a_lock_is_refused() -> None:
    record: list[Any] = [threading.Lock()]
    record.insert(0, record)
    error = unpicklable_record([record])
    assert error is not None
    assert "cannot pickle '_thread.lock' object" in error.reason
