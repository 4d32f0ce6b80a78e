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

from opchain.runtime.errors import UnpicklableRecordError
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
    """A list that holds itself."""
    outer: list[Any] = []
    outer.append(outer)
    return outer


@settings(deadline=None)
@given(st.lists(st.booleans()))
def test_the_first_offender_is_found(offends: list[bool]) -> None:
    records = [Refuses(number) if bad else number for number, bad in enumerate(offends)]
    error = unpicklable_record(records)
    if True in offends:
        assert error is not None
        assert error.record == f"Refuses({offends.index(True)})"
        assert error.reason == "ValueError: no way"
    else:
        assert error is None


def test_a_class_of_the_main_program_travels_by_value() -> None:
    # As on an executor: the class says it is __main__'s, and there is no such class there.
    click = type("Click", (), {"__module__": "__main__", "user": "ada"})
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(click(), 5)
    (loaded,) = pickle.loads(dump_records([click()]))
    # The class itself, not a copy: functions of the program know their records.
    assert type(loaded) is click


def test_without_cloudpickle_pickle_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    assert pickle.loads(dump_records([1, "two"])) == [1, "two"]
    click = type("Click", (), {"__module__": "__main__"})
    with pytest.raises(pickle.PicklingError, match="Click"):
        dump_records([click()])


def test_the_error_survives_being_pickled() -> None:
    error = UnpicklableRecordError("(1, <lock>)", "TypeError: no", "'map' (clicks.py:3)")
    copied = pickle.loads(pickle.dumps(error))
    assert str(copied) == str(error)
    assert str(error).startswith("'map' (clicks.py:3): the record (1, <lock>) cannot be pickled")


def test_a_lock_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        dump_records([threading.Lock()])


def test_the_wire_needs_the_standard_library_only() -> None:
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
def test_flat_records_arrive_as_they_were(records: list[Any]) -> None:
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
def test_what_is_not_flat_is_left_to_the_ordinary_pickle(record: Any) -> None:
    assert dump_flat(["a", record, "b"]) is None
    assert not looks_flat([record])
    # Only three records are looked at.
    assert looks_flat(["a", record, "b", "c", "d"])


def test_lists_among_flat_records_arrive_equal() -> None:
    records = ["a", {"b": [1, (2.5, None)]}, {3}, "c", "d"]
    data = dump_flat(records)
    assert data is not None
    assert pickle.loads(data) == records


def test_no_records_look_flat() -> None:
    assert looks_flat([])
    assert not looks_flat([[1]])
