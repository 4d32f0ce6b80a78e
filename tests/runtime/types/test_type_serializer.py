from __future__ import annotations

import pickle
from io import BytesIO

import pytest

from opchain.runtime.types.type_information import TypeSerializer, VoidNamespaceSerializer, void


class IntegerSerializer(TypeSerializer[int]):
    def __init__(self, size: int) -> None:
        self.size = size

    def serialize(self, element: int, stream: BytesIO) -> None:
        stream.write(element.to_bytes(self.size, "big"))

    def deserialize(self, stream: BytesIO) -> int:
        return int.from_bytes(stream.read(self.size), "big")


def test_consecutive_values_are_deserialized_from_a_stream() -> None:
    stream = BytesIO()
    for value in (5, 6):
        IntegerSerializer(2).serialize(value, stream)
    stream.seek(0)
    assert [IntegerSerializer(2).deserialize(stream) for _ in range(2)] == [5, 6]


def test_serializers_are_equal_by_class_and_attributes() -> None:
    assert IntegerSerializer(2) == IntegerSerializer(2)
    assert hash(IntegerSerializer(2)) == hash(IntegerSerializer(2))
    assert IntegerSerializer(2) != IntegerSerializer(4)
    assert IntegerSerializer(2) != VoidNamespaceSerializer()
    assert pickle.loads(pickle.dumps(VoidNamespaceSerializer())) == VoidNamespaceSerializer()
    assert repr(IntegerSerializer(2)) == "IntegerSerializer()"


def test_serialize_and_deserialize_are_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        TypeSerializer()  # type: ignore[abstract]


def test_the_void_namespace_is_serialized_as_no_bytes() -> None:
    stream = BytesIO()
    VoidNamespaceSerializer().serialize(void, stream)
    assert stream.getvalue() == b""
    assert VoidNamespaceSerializer().deserialize(stream) == void == b""
