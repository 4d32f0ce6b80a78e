"""Generated code reads and writes JSON with the values, texts and errors of `json.loads` and `json.dumps`."""

from __future__ import annotations

import enum
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.records.json_texts import JsonFields, are_fields, fast_loads
from opchain.runtime.task.generated_code import fast_dumps, json_object

VALUES = (
    *("-0", "1e5", "1.0", "12345678901234567890123", "1e400", "NaN", "-0.0", '"\\ud800"', "01"),
    *('"\\u0041"', "1.7976931348623159e308", "5e-324", '"a\tb"', "[1,{}]", "1.", "+1", "tru", ""),
    *("9" * 5_000, "[" * 2_000 + "]" * 2_000, '"\x7f\u2028"', "{}", '{"a":1,"a":2}', "-"),
)


def outcome(read: Any, text: Any) -> Any:
    try:
        found = read(text)
    except Exception as error:  # noqa: BLE001 - errors are compared, too
        return type(error), str(error)
    return repr(found)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "around", ["%s", '{"x": %s}', '{"x": 1, "y": %s}', ' {"x": 1}%s', "\ufeff%s"]
)
def test_fast_loads_gives_the_values_and_errors_of_json_loads(around: str, value: str) -> None:
    text = around % value
    assert outcome(fast_loads(), text) == outcome(json.loads, text)


@pytest.mark.parametrize("value", [b'{"x": 1}', None, 5, bytearray(b"[1]")])
def test_values_other_than_str_are_passed_to_json_loads(value: Any) -> None:
    assert outcome(fast_loads(), value) == outcome(json.loads, value)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("around", ['{"x": %s}', '{"x": 1, "y": %s}', "%s", '{"x": 1}%s'])
@pytest.mark.parametrize("has_msgspec", [True, False])
def test_fields_are_those_of_json_loads_or_none(
    around: str, value: str, has_msgspec: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_msgspec:
        monkeypatch.setitem(sys.modules, "msgspec", None)
    text = around % value
    read = JsonFields([("x", ()), ("z", (7,))]).read([text, '{"x": "other"}'])
    if read is not None:
        whole = json.loads(text)
        assert repr((read[0].field_0, read[0].field_1)) == repr((whole["x"], whole.get("z", 7)))
        assert read[1].field_0 == "other"


def test_fields_are_read_without_msgspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "msgspec", None)
    fields = JsonFields([("y", (7,)), ("x", ())])
    read = fields.read(['{"x": 1, "y": null}', '{"x": NaN}'])
    assert read is not None
    assert [(item.field_0, repr(item.field_1)) for item in read] == [(None, "1"), (7, "nan")]
    assert all(map(are_fields, read))
    assert fields.read(['{"x": 1}', '{"y": 1}']) is None
    assert fields.read(["[1]"]) is None
    assert fields.read([None]) is None
    assert (
        JsonFields([]).read(['{"x": 1}']) is None
    )  # documents without fields are parsed where they are sent


def test_without_fields_documents_are_only_checked() -> None:
    fields = JsonFields([])
    assert len(fields.read(['{"x": 1, "y": [null]}', "{}"]) or ()) == 2
    for text in ('{"x": 1', "[1]", "1", '{"x": NaN}', ""):
        assert fields.read(["{}", text]) is None


@pytest.mark.parametrize("has_msgspec", [True, False])
def test_documents_with_other_fields_can_be_refused(
    has_msgspec: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_msgspec:
        monkeypatch.setitem(sys.modules, "msgspec", None)
    fields = JsonFields([("x", ()), ("y", (7,))], has_no_others=True)
    assert fields.read(['{"x": 1, "z": 2}']) is None
    (read,) = fields.read(['{"x": 1}']) or ()
    assert (read.field_0, read.field_1) == (1, 7)


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.slow
@given(documents)
def test_fast_loads_parses_random_documents_like_json_loads(document: Any) -> None:
    text = json.dumps(document)
    found = fast_loads()(text)
    assert repr(found) == repr(json.loads(text))


class Level(enum.IntEnum):
    LOW = 1


class Text(str):
    __slots__ = ()


def in_a_circle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


ODD_VALUES: tuple[Any, ...] = (
    *(True, None, 1.5, float("nan"), float("-inf"), 10**5_000, -(10**20), Level.LOW, Text("t")),
    *(
        'a"b\\\n\x00\ud800é\U0001f600',
        b"bytes",
        {1},
        object,
        in_a_circle(),
        {1: 2, None: 3},
        {(): 1},
    ),
    *([{"x": ({},)}], {"a": object}, json, [1] * 3, (), {}),
)


@pytest.mark.parametrize("value", ODD_VALUES, ids=lambda value: type(value).__name__)
def test_fast_dumps_gives_the_texts_and_errors_of_json_dumps(value: Any) -> None:
    assert outcome(fast_dumps(), value) == outcome(json.dumps, value)
    fields = ("plain", "100 %s %", 'é"\n')
    write = json_object(fields)
    assert outcome(lambda item: write(1, item, "x"), value) == outcome(
        lambda item: json.dumps(dict(zip(fields, (1, item, "x"), strict=True))), value
    )


@given(documents)
def test_fast_dumps_writes_random_documents_like_json_dumps(document: Any) -> None:
    assert fast_dumps()(document) == json.dumps(document)
    assert json_object(("a", "b"))(document, 7) == json.dumps({"a": document, "b": 7})


def test_a_replaced_json_encoder_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sets(json.JSONEncoder):
        def default(self, o: Any) -> Any:
            return sorted(o)

    monkeypatch.setattr(json, "_default_encoder", Sets())
    assert fast_dumps()({2, 1}) == "[1, 2]"
    assert json_object(("x",))({2, 1}) == '{"x": [1, 2]}'


def test_a_replaced_default_encoder_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    dumps = fast_dumps()
    monkeypatch.setattr(json.JSONEncoder, "default", lambda _, value: sorted(value))
    assert dumps({2, 1}) == "[1, 2]"
