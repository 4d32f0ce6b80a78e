from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest

from opchain.runtime.functions.window import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    PickledWindowSerializer,
    TimeWindow,
    TimeWindowSerializer,
)

# The bytes of Flink's serializers.
WINDOWS: list[tuple[Any, Any, str]] = [
    (TimeWindowSerializer(), TimeWindow(-1, 258), "ffffffffffffffff0000000000000102"),
    (CountWindowSerializer(), CountWindow(7), "0000000000000007"),
    (GlobalWindowSerializer(), GlobalWindow.get(), "00"),
]


@pytest.mark.parametrize(("serializer", "window", "hexadecimal"), WINDOWS)
def test_windows_are_serialized_as_in_flink(serializer: Any, window: Any, hexadecimal: str) -> None:
    stream = BytesIO()
    serializer.serialize(window, stream)
    assert stream.getvalue().hex() == hexadecimal


@pytest.mark.parametrize(
    ("serializer", "window"),
    [
        *[(serializer, window) for serializer, window, _ in WINDOWS],
        *[(PickledWindowSerializer(), window) for _, window, _ in WINDOWS],
    ],
)
def test_consecutive_windows_are_deserialized_from_a_stream(serializer: Any, window: Any) -> None:
    stream = BytesIO()
    serializer.serialize(window, stream)
    serializer.serialize(window, stream)
    stream.seek(0)
    assert [serializer.deserialize(stream) for _ in range(2)] == [window, window]
    assert stream.read() == b""
