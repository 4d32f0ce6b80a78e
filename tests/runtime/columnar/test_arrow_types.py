from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from opchain.runtime.columnar.spark_types import SparkType, arrow_schema, pyarrow
from opchain.runtime.errors import MissingLibraryError

COLUMNS = SparkType.read(
    {
        "type": "struct",
        "fields": [
            {"name": "s", "type": "string", "nullable": False, "metadata": {}},
            {
                "name": "l",
                "type": {"type": "array", "elementType": "binary", "containsNull": False},
                "nullable": True,
                "metadata": {},
            },
        ],
    }
)


def test_arrow_schema_has_the_nullability_of_spark() -> None:
    schema = arrow_schema(COLUMNS)
    assert schema.field("s") == pa.field("s", pa.string(), nullable=False)
    assert not schema.field("l").type.value_field.nullable


def test_large_arrow_types_are_used_on_request() -> None:
    schema = arrow_schema(COLUMNS, large=True)
    assert schema.field("s").type == pa.large_string()
    assert schema.field("l").type.value_type == pa.large_binary()


def test_a_missing_pyarrow_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingLibraryError, match="turning records into columns needs"):
        pyarrow()
