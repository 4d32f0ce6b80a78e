"""The state of a checkpoint as a DataFrame whose partitions are key groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.state_rows import Chosen, chosen_operators, read_rows, record_batch
from opchain.runtime.columnar.type_mapping import spark_type_of
from opchain.runtime.state.keys.key_groups import KeyGroupRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from opchain.runtime.checkpoint.savepoint import Located
    from opchain.runtime.types.type_information import TypeInformation

_ROWS_PER_BATCH = 10_000


class GroupReader:
    """Reads the key groups whose numbers it gets. Picklable: executors read the files themselves."""

    def __init__(self, checkpoint: Located, chosen: Chosen, of_type: TypeInformation[Any]) -> None:
        self._checkpoint = checkpoint
        self._chosen = chosen
        self._type = of_type

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The rows of key groups as record batches."""
        rows = []
        for batch in batches:
            groups = batch.column(0).to_pylist()
            span = KeyGroupRange(min(groups), max(groups))  # a partition of a range is without gaps
            for row in read_rows(self._checkpoint, self._chosen._replace(key_groups=span)):
                rows.append(row)
                if len(rows) == _ROWS_PER_BATCH:
                    yield record_batch(rows, self._type)
                    rows = []
        if rows:
            yield record_batch(rows, self._type)


def state_frame(
    spark: SparkSession, checkpoint: Located, chosen: Chosen, of_type: TypeInformation[Any]
) -> DataFrame:
    """The rows of keyed state and timers; a partition has contiguous key groups."""
    operators = chosen_operators(checkpoint.metadata, chosen.operator, chosen.state)
    groups = max(operator.max_parallelism for operator in operators)
    partitions = min(groups, spark.sparkContext.defaultParallelism)
    numbers = spark.range(0, groups, 1, partitions)
    from pyspark.sql.types import StructType  # noqa: PLC0415 - executors load this module to read only

    schema = StructType.fromJson(spark_type_of(of_type).to_json())
    return numbers.mapInArrow(GroupReader(checkpoint, chosen, of_type), schema)
