"""The committed files of an unbounded job as a streaming DataFrame."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from opchain.runtime.columnar.spark_types import SparkType
from opchain.runtime.columnar.type_mapping import columns_of
from opchain.runtime.errors import GraphError
from opchain.runtime.files.file_systems import SCHEME_END, file_system_of
from opchain.runtime.spark.dataframes import schema_text
from opchain.runtime.spark.session import active_or_new_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame


_OF_PATTERNS = re.compile(r"[\\*?\[\]{}]")


def record_type_of(schema: Any) -> SparkType:
    """What records must fit, of DDL text or Spark's JSON.

    Raises:
        GraphError: It is not DDL.
        UnsupportedFeatureError: Records cannot hold a column.
        SparkUnavailableError: There is no Spark to read DDL.
    """
    return SparkType.parse(schema_text(schema, active_or_new_session()))


def committed_records(
    folder: str, record_type: SparkType, options: Mapping[str, Any] = {}
) -> DataFrame:
    """The records of the files in a folder, and of all that come to be there.

    Args:
        folder: What a ColumnFileSink writes to; made where it is missing.
        record_type: Its record type.
        options: Of Spark's file stream.

    Raises:
        GraphError: Spark would take the folder's name for a pattern.
    """
    from pyspark.sql.types import StructType  # noqa: PLC0415 - it may be missing

    found = _OF_PATTERNS.search(folder)
    if found is not None:  # escaped, Spark 4.3 reads files twice where there are several
        raise GraphError(
            f"the files of a DataFrame cannot be in {folder}: Spark reads '{found[0]}' as part "
            f"of a pattern; use another path"
        )
    file_system_of(folder).make_folder(folder)
    session = active_or_new_session()
    schema = StructType.fromJson(columns_of(record_type).to_json())
    url = folder if SCHEME_END in folder else f"file://{folder}"
    return session.readStream.schema(schema).options(**options).parquet(url)
