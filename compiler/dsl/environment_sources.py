"""Where streams begin: the sources of an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from opchain.compiler.dsl.argument_checks import at_call, checked, checked_function, type_of
from opchain.compiler.dsl.data_stream import DataStream
from opchain.compiler.dsl.environment_dependencies import EnvironmentDependencies
from opchain.compiler.graph.call_site import user_call_site
from opchain.compiler.graph.transformation import ChainingStrategy, OperatorTransformation
from opchain.compiler.settings.old_spellings import warn_of_old_spelling
from opchain.runtime.connectors.collection import CollectionSource
from opchain.runtime.connectors.fed_source import DataFrameSource
from opchain.runtime.connectors.file_inputs import TextLineSource
from opchain.runtime.connectors.sequence import NumberSequenceSource
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.runtime.functions.source import Source
from opchain.runtime.functions.source_sink_functions import (
    ParallelSourceFunction,
    SourceBackedFunction,
    SourceFunction,
)
from opchain.runtime.program.operator_specs import (
    InputFormatSourceSpec,
    LegacySourceSpec,
    SourceSpec,
)
from opchain.runtime.watermarks.strategy import WatermarkStrategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opchain.compiler.dsl.argument_checks import DeclaredType
    from opchain.runtime.types.type_information import TypeInformation

T = TypeVar("T")


class EnvironmentSources(EnvironmentDependencies):
    """The methods that begin a stream.

    A source that nobody reads is not a part of the program, as in Flink.
    """

    def from_source(
        self,
        source: Source[T],
        watermark_strategy: WatermarkStrategy[Any],
        source_name: str,
        type_info: DeclaredType = None,
    ) -> DataStream[T]:
        """A stream of a Source, with its timestamps and watermarks.

        Without a declared type the records have the source's, if it knows one.
        """
        call = "from_source"
        checked_function(source, Source, call)
        checked(watermark_strategy, WatermarkStrategy, call, "the watermark strategy")
        checked(source_name, str, call, "the source's name")
        if type_info is None:
            type_info = source.get_produced_type()
        return self._begin(SourceSpec(source, watermark_strategy), source_name, type_info, call)

    def from_dataframe(
        self,
        dataframe: Any,
        watermark_strategy: WatermarkStrategy[Any] | None = None,
        source_name: str = "DataFrame",
    ) -> DataStream[Any]:
        """The rows of a Spark DataFrame, as Rows with its columns' names and types; without end if it is streaming.

        Its partitions go to the subtasks in contiguous runs: set the source's parallelism to theirs to keep
        them apart. Whatever the DataFrame computes runs in the job's own first stage; only an adaptive plan
        runs its shuffles before.

        Flink: `StreamTableEnvironment.toDataStream` of a table.

        Args:
            dataframe: One of a classic session; nothing of it runs yet.
            watermark_strategy: Event time of the rows; None for none.
            source_name: What plans call it.

        Raises:
            GraphError: It is no such DataFrame.
            UnsupportedFeatureError: It has a column whose type records cannot hold.
        """
        call = "from_dataframe"
        checked(source_name, str, call, "the source's name")
        strategy = WatermarkStrategy.no_watermarks()
        if watermark_strategy is not None:
            strategy = checked(
                watermark_strategy, WatermarkStrategy, call, "the watermark strategy"
            )
        try:
            source = DataFrameSource(dataframe)
        except GraphError as error:
            raise type(error)(f"{at_call(call)}: {error}") from error
        record_type = source.get_produced_type()
        return self._begin(SourceSpec(source, strategy), source_name, record_type, call)

    def add_source(
        self,
        source_func: SourceFunction[T],
        source_name: str = "Custom Source",
        type_info: DeclaredType = None,
    ) -> DataStream[T]:
        """A stream of a SourceFunction, unbounded to the planner.

        Runs in one subtask, unless it is a ParallelSourceFunction.
        """
        checked_function(source_func, SourceFunction, "add_source")
        checked(source_name, str, "add_source", "the source's name")
        if isinstance(source_func, SourceBackedFunction):
            return self.from_source(
                source_func.as_source(), WatermarkStrategy.no_watermarks(), source_name, type_info
            )
        is_parallel = isinstance(source_func, ParallelSourceFunction)
        spec = LegacySourceSpec(source_func, is_parallel)
        return self._begin(spec, source_name, type_info, "add_source")

    def from_collection(
        self, collection: Sequence[T] | Iterable[T], type_info: DeclaredType = None
    ) -> DataStream[T]:
        """A bounded stream of the records, in order, from one subtask.

        The records are read now and are sent with the program. As in PyFlink a declared type converts
        them: tuples become rows where it is a row's.

        Flink: a legacy source, as PyFlink makes it; `from_data` makes a new-style one.
        """
        call = "from_collection"
        record_type = type_of(type_info, call)
        source = CollectionSource(_records(collection, record_type, call))
        spec = InputFormatSourceSpec(source, is_parallel=True, is_bounded=True)
        return self._begin(spec, "Collection Source", record_type, call).force_non_parallel()

    def from_elements(self, *data: T) -> DataStream[T]:
        """A bounded stream of the arguments; see `from_collection`. Flink has it in Java only."""
        _require_records(data, "from_elements")
        return self.from_collection(data)

    def from_data(self, *data: T, type_info: DeclaredType = None) -> DataStream[T]:
        """A bounded stream of the arguments, or of one list of records.

        Unlike `from_collection` it may be given a higher parallelism: each subtask then emits a
        contiguous part. Flink has it in Java only: a DataGeneratorSource.
        """
        records: Any = data[0] if len(data) == 1 and isinstance(data[0], (list, range)) else data
        record_type = type_of(type_info, "from_data")
        found = _require_records(_records(records, record_type, "from_data"), "from_data")
        source = CollectionSource(found)
        # Flink gives it a strategy too, but to records without timestamps, so that it does nothing.
        return self._begin(
            SourceSpec(source), "Collection Source", type_info, "from_data"
        ).set_parallelism(1)

    def from_sequence(self, start: int, end: int) -> DataStream[int]:
        """The numbers from `start` to `end`, both included; each subtask emits a contiguous part.

        Flink has it in Java only.
        """
        source = NumberSequenceSource(start, end)
        return self._begin(SourceSpec(source), "Sequence Source", None, "from_sequence")

    def generate_sequence(self, start: int, end: int) -> DataStream[int]:
        """The numbers from `start` to `end`, as a legacy source: subtask i of n emits every n-th.

        Flink has it in Java only, and calls it deprecated: use `from_sequence`.
        """
        from opchain.runtime.connectors.sequence import StatefulSequenceSource  # noqa: PLC0415

        return self.add_source(StatefulSequenceSource(start, end), "Sequence Source (Deprecated)")

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream[str]:
        """The lines of a file, of all files of a folder, or of those that a pattern matches.

        Large files are read in parts by several subtasks. Flink's method of this name is gone since
        2.0; this is `from_source` of a file source.
        """
        warn_of_old_spelling(
            "read_text_file()",
            "call from_source() with FileSource.for_record_stream_format(StreamFormat.text_line_format(), path)",
        )
        source = TextLineSource(file_path, charset_name=charset_name)
        return self._begin(SourceSpec(source), "Text File Source", None, "read_text_file")

    def create_input(self, input_format: Any, type_info: DeclaredType = None) -> DataStream[Any]:
        """A bounded stream of an AvroInputFormat, or of any other bounded Source, as a legacy source.

        Flink has two operators for files: one that looks for them, and one that reads.

        Raises:
            UnsupportedFeatureError: It is an InputFormat of Java.
        """
        call = "create_input"
        if not isinstance(input_format, Source) or not input_format.is_bounded:
            raise UnsupportedFeatureError(
                f"{at_call(call)}: {input_format!r} cannot be read; pass an AvroInputFormat, or write a "
                "Source and use from_source()"
            )
        spec = InputFormatSourceSpec(input_format, is_parallel=True, is_bounded=True)
        record_type = input_format.get_produced_type() if type_info is None else type_info
        return self._begin(spec, "Custom File Source", record_type, call)

    def socket_text_stream(
        self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0
    ) -> DataStream[str]:
        """The texts between delimiters that a server sends, read by one subtask.

        Ends when the server closes the connection and `max_retry` attempts to connect again (-1 for no
        end of them) are over. Flink has it in Java only.
        """
        from opchain.runtime.connectors.socket_source import (  # noqa: PLC0415 - rarely used
            SocketTextStreamFunction,
        )

        function = SocketTextStreamFunction(hostname, port, delimiter, max_retry)
        return self.add_source(function, "Socket Stream")

    def _begin(
        self, spec: SourceSpec | LegacySourceSpec, name: str, type_info: DeclaredType, call: str
    ) -> DataStream[Any]:
        transformation = OperatorTransformation(
            self.next_transformation_id(),
            name,
            (),
            spec=spec,
            parallelism=self.get_parallelism(),
            call_site=user_call_site(),
            output_type=type_of(type_info, call),
        )
        if isinstance(spec, LegacySourceSpec):
            transformation.chaining_strategy = ChainingStrategy.HEAD
            if not spec.is_parallel:
                transformation.set_parallelism(1)
                transformation.is_parallel = False
        return DataStream(self, transformation)  # type: ignore[arg-type]  # it is one


def _records(collection: Any, record_type: TypeInformation[Any] | None, call: str) -> Sequence[Any]:
    if isinstance(collection, (str, bytes)):
        raise TypeError(
            f"{at_call(call)} got the text {collection!r}, which would become a stream of "
            f"characters; pass a list"
        )
    try:
        records = list(collection)
    except TypeError as error:
        raise TypeError(
            f"{at_call(call)}: {collection!r} is not a collection of records"
        ) from error
    if record_type is None:
        return records
    from opchain.runtime.types.declared_form import converter_to  # noqa: PLC0415 - as needed

    convert = converter_to(record_type)
    return records if convert is None else [convert(record) for record in records]


def _require_records(records: Sequence[Any], call: str) -> Sequence[Any]:
    if not records:
        raise ValueError(f"{at_call(call)} needs at least one record")
    return records
