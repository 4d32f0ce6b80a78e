"""The state backends for tests."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

BACKENDS = [
    "hashmap",
    pytest.param(
        "rocksdb", marks=pytest.mark.skipif(find_spec("rocksdict") is None, reason="no rocksdict")
    ),
]
