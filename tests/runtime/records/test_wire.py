from __future__ import annotations

import pickle
import struct
import threading
from array import array
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.runtime.errors import UnpicklableRecordError, UnreadableRecordError, WireFormatError
from opchain.runtime.records.columns import Columns
from opchain.runtime.records.elements import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    CheckpointBarrier,
    EndOfInput,
    LatencyMarker,
    RecordBatch,
    Watermark,
    WatermarkStatus,
)
from opchain.runtime.records.wire import (
    HEADER_BYTES,
    VERSION,
    PayloadKind,
    decode,
    encode,
    frame,
    unframe,
)
from opchain.runtime.types.row import Row, RowKind

LONGS = st.integers(MIN_WATERMARK, MAX_WATERMARK)
RECORDS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(),
    st.binary(),
    st.tuples(st.text(), st.integers()),
    st.lists(st.integers()),
)


@st.composite
def batches(draw: st.DrawFn) -> RecordBatch:
    values = draw(st.lists(RECORDS, min_size=1))
    size = len(values)
    timestamps = draw(
        st.none()
        | st.lists(LONGS, min_size=size, max_size=size)
        | st.lists(st.none() | LONGS, min_size=size, max_size=size).filter(any)
    )
    return RecordBatch(values, timestamps)


ELEMENTS = st.lists(
    st.one_of(
        batches(),
        st.builds(Watermark, LONGS),
        st.sampled_from(WatermarkStatus),
        st.builds(LatencyMarker, LONGS, st.text(), st.integers(0, 100)),
        st.builds(CheckpointBarrier, LONGS, LONGS),
        st.just(EndOfInput()),
    )
)
ONE_OF_EACH = [
    RecordBatch([1, "two", (3, None)], [10, 20, 30]),
    RecordBatch(["no timestamps"]),
    RecordBatch(["some", "none"], [5, None]),
    Watermark(17),
    WatermarkStatus.IDLE,
    WatermarkStatus.ACTIVE,
    LatencyMarker(1_700_000_000_000, "cbc357ccb763df2852fee8c4fc7d55f2", 3),
    CheckpointBarrier(7, 1_700_000_000_001),
    EndOfInput(),
    RecordBatch(Columns([["by", "field"], [1, 2]], ((), ("same",), ()))),
    RecordBatch(Columns([array("q", [-1, 2**63 - 1])], ((), (None,)))),
]


@settings(deadline=None)
@given(ELEMENTS)
def test_encoded_elements_are_decoded_unchanged(elements: list) -> None:
    assert decode(encode(elements)) == elements


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_batches_of_bytes_are_decoded_unchanged(form: type) -> None:
    assert decode(form(encode(ONE_OF_EACH))) == ONE_OF_EACH


NAMED = [Row(name="a", number=1), Row(name="b", number=[2])]


@pytest.mark.parametrize(
    "rows",
    [
        NAMED,
        [Row(1, None), Row(2, "x")],
        [*NAMED, Row("c", 3)],
        [*NAMED, Row(number=3, name="c")],
        [*NAMED, Row(1, 2, 3)],
        [*NAMED, ("c", 3)],
        [Row(), Row()],
    ],
)
def test_rows_are_decoded_unchanged(rows: list[Any]) -> None:
    (batch,) = decode(encode([RecordBatch(rows, list(range(len(rows))))]))
    assert isinstance(batch, RecordBatch)
    assert batch == RecordBatch(rows, list(range(len(rows))))
    assert type(batch.values) is list
    assert list(map(repr, batch.values)) == list(map(repr, rows))


def test_rows_keep_their_kind() -> None:
    deleted = Row(1)
    deleted.set_row_kind(RowKind.DELETE)
    (batch,) = decode(encode([RecordBatch([Row(1), deleted])]))
    assert isinstance(batch, RecordBatch)
    assert [row.get_row_kind() for row in batch.values] == [RowKind.INSERT, RowKind.DELETE]


def test_rows_with_the_same_names_store_the_names_once() -> None:
    rows = [Row(name="a", number=number) for number in range(1000)]
    assert len(encode([RecordBatch(rows)])) < len(pickle.dumps(rows, 5)) / 3


def test_a_batch_whose_timestamps_are_all_none_has_no_timestamps() -> None:
    assert decode(encode([RecordBatch([1, 2], [None, None])])) == [RecordBatch([1, 2])]


def test_the_wire_format_of_this_version_does_not_change() -> None:
    # Golden bytes: a change of the format must raise VERSION.
    items = [
        (0, [1, "two", (3, None)], struct.pack("<3q", 10, 20, 30)),
        (0, ["no timestamps"], None),
        (0, ["some", "none"], [5, None]),
        (1, 17),
        (2, True),
        (2, False),
        (3, 1_700_000_000_000, "cbc357ccb763df2852fee8c4fc7d55f2", 3),
        (4, 7, 1_700_000_000_001),
        (5,),
        (6, (["by", "field"], [1, 2]), ((), ("same",), ()), None),
        (6, (struct.pack("<2q", -1, 2**63 - 1),), ((), (None,)), None),
    ]
    body = pickle.dumps(items, 5)
    fields = b"OPCH" + bytes([4, 1]) + len(body).to_bytes(8, "little")
    expected = fields + crc32(fields + body).to_bytes(4, "little") + body
    assert decode(expected) == ONE_OF_EACH
    payload = encode(ONE_OF_EACH)
    assert payload[:6] == expected[:6]
    assert pickle.loads(payload[HEADER_BYTES:]) == items


def test_payloads_contain_no_class_of_opchain() -> None:
    assert b"opchain" not in encode(ONE_OF_EACH)


def test_every_truncation_is_detected() -> None:
    payload = encode(ONE_OF_EACH)
    for length in range(len(payload)):
        with pytest.raises(WireFormatError):
            decode(payload[:length])


def test_every_flipped_bit_is_detected() -> None:
    payload = encode(ONE_OF_EACH)
    for position in range(8 * len(payload)):
        changed = bytearray(payload)
        changed[position // 8] ^= 1 << position % 8
        with pytest.raises(WireFormatError):
            decode(changed)


@settings(deadline=None)
@given(ELEMENTS, st.data())
def test_any_change_of_a_few_bytes_is_detected(elements: list, data: st.DataObject) -> None:
    payload = encode(elements)
    start = data.draw(st.integers(0, len(payload) - 1))
    # A CRC of 32 bits detects every burst of at most 4 bytes.
    patch = data.draw(st.binary(min_size=1, max_size=min(4, len(payload) - start)))
    changed = payload[:start] + patch + payload[start + len(patch) :]
    if changed != payload:
        with pytest.raises(WireFormatError):
            decode(changed)


@pytest.mark.parametrize(
    ("payload", "message"),
    {
        "nothing": (b"", "at least 18 bytes, found 0: it was cut short"),
        "half a header": (encode([])[:10], "at least 18 bytes, found 10"),
        "half a body": (encode(ONE_OF_EACH)[:-5], "it was cut short or changed"),
        "too much": (encode([]) + b"x", "announces 4 bytes and holds 5"),
        "a bare pickle": (pickle.dumps([1, 2, 3] * 9), "not written by opchain"),
        "newer": (b"OPCH\x09" + encode([])[5:], "in format 9, expected 4: use the same version"),
        "another kind": (frame(PayloadKind.REPORT, b""), "is of kind 2, expected kind 1"),
        "corrupt": (encode([])[:-1] + b"x", "were altered in transit"),
        "an unknown tag": (
            frame(PayloadKind.ELEMENTS, pickle.dumps([(8, 1)])),
            "an element with tag 8, expected one of [0, 1, 2, 3, 4, 5, 6, 7]",
        ),
    }.values(),
)
def test_the_error_names_the_damage(payload: bytes, message: str) -> None:
    with pytest.raises(WireFormatError) as caught:
        decode(payload)
    assert message in str(caught.value)


def test_frames_carry_any_payload() -> None:
    payload = frame(PayloadKind.REPORT, b"report")
    assert bytes(unframe(PayloadKind.REPORT, payload)) == b"report"
    assert payload[4] == VERSION


def test_the_error_names_the_record_that_cannot_be_pickled() -> None:
    lock = threading.Lock()
    batch = RecordBatch([*range(100), (100, lock), *range(101, 200)])
    with pytest.raises(UnpicklableRecordError) as caught:
        encode([RecordBatch(["fine"]), Watermark(1), batch, EndOfInput()])
    assert caught.value.record == "(100, <unlocked _thread.lock object>)"
    assert "cannot pickle" in caught.value.reason
    assert isinstance(caught.value, TypeError)


def test_records_of_a_missing_class_are_not_reported_as_damage() -> None:
    body = pickle.dumps([(0, [pickle.PickleError()], None)])
    payload = frame(PayloadKind.ELEMENTS, body.replace(b"PickleError", b"PickleErrex"))
    with pytest.raises(
        UnreadableRecordError, match=r"AttributeError.*importable on every executor"
    ):
        decode(payload)
