"""StreamExecutionEnvironment: settings and sources of a program, and the methods that compile and run it."""
# ruff: noqa: PLC0415 - settings that a program does not use are not imported.

from __future__ import annotations

import json
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, overload

from opchain.compiler import interception
from opchain.compiler.dsl.argument_checks import at_call, checked, checked_function, type_of
from opchain.compiler.dsl.captured_functions import NotCapturable
from opchain.compiler.dsl.data_stream import DataStream
from opchain.compiler.graph.transformation import (
    MAX_PARALLELISM_LIMIT,
    UNSET,
    ChainingStrategy,
    OperatorTransformation,
    upstream_of,
    user_call_site,
)
from opchain.compiler.interception import CapturedJobClient
from opchain.compiler.settings import pipeline_options
from opchain.compiler.settings.old_spellings import OldEnvironmentCalls, warn_of_old_spelling
from opchain.runtime.configuration.configuration import Configuration
from opchain.runtime.connectors.collection import CollectionSource, NumberSequenceSource
from opchain.runtime.connectors.dataframe_source import DataFrameSource
from opchain.runtime.connectors.file_source import TextLineSource
from opchain.runtime.errors import (
    GraphError,
    UnsupportedFeatureError,
    shorten_notebook_refusals,
)
from opchain.runtime.functions.source import Source
from opchain.runtime.functions.source_sink_functions import (
    ParallelSourceFunction,
    SourceBackedFunction,
    SourceFunction,
)
from opchain.runtime.java_objects import no_java_attribute
from opchain.runtime.program.operator_specs import (
    InputFormatSourceSpec,
    LegacySourceSpec,
    SourceSpec,
)
from opchain.runtime.time import Duration
from opchain.runtime.watermarks.strategy import WatermarkStrategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from typing_extensions import Self

    from opchain.compiler.dsl.argument_checks import DeclaredType
    from opchain.compiler.dsl.collected import CloseableIterator
    from opchain.compiler.graph.job_graph import JobGraph
    from opchain.compiler.graph.plan import Program
    from opchain.compiler.graph.stream_graph import StreamGraph
    from opchain.compiler.graph.transformation import Transformation
    from opchain.compiler.plan.page.render import ShownPlan, ShownText
    from opchain.compiler.settings.checkpoint_config import CheckpointConfig, CheckpointingMode
    from opchain.compiler.settings.execution_config import ExecutionConfig, RuntimeExecutionMode
    from opchain.compiler.settings.slot_sharing_group import SlotSharingGroup
    from opchain.compiler.settings.state_backend import StateBackend
    from opchain.runtime.connectors.collection import CachedRecords
    from opchain.runtime.epochs.epoch_progress import EpochListener
    from opchain.runtime.job.client import JobClient, JobExecutionResult
    from opchain.runtime.job.run import JobRun
    from opchain.runtime.types.type_information import TypeInformation


_FLUSH_WHEN_FULL = -1


_FILES = "python.files"
_ARCHIVES = "python.archives"
_BETWEEN_FILES = ","
_BETWEEN_PARAMETERS = "#"


def _joined(path: str, second: str | None, call: str) -> str:
    if second is None:
        return path
    return f"{path}{_BETWEEN_PARAMETERS}{checked(second, str, call, 'the folder')}"


T = TypeVar("T")


def _records(collection: Any, record_type: TypeInformation[Any] | None, call: str) -> Sequence[Any]:
    try:
        records = list(collection)
    except TypeError as error:
        raise TypeError(
            f"{at_call(call)}: {collection!r} is not a collection of records; pass a list"
        ) from error
    if record_type is None:
        return records
    from opchain.runtime.types.collection_values import converter_to

    convert = converter_to(record_type)
    return records if convert is None else [convert(record) for record in records]


def _require_records(records: Sequence[Any], call: str) -> Sequence[Any]:
    if not records:
        raise ValueError(f"{at_call(call)} needs at least one record")
    return records


class StreamExecutionEnvironment(NotCapturable, OldEnvironmentCalls):
    """The context of a program: its settings, its sources, and its transformations so far.

    Setters return the environment. All settings are stored in one Configuration, under Flink's keys. A setter and its
    key are the same setting: the last call wins.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> _ = env.from_collection(["a", "b"]).map(str.upper).print()
    >>> [transformation.name for transformation in env.get_transformations()]
    ['Map', 'Print to Std. Out']
    """

    _default_local_parallelism: ClassVar[int] = 1

    def __init__(self, configuration: Configuration | None = None) -> None:
        shorten_notebook_refusals()
        self._configuration = Configuration()
        self._local_parallelism = StreamExecutionEnvironment._default_local_parallelism
        self._slot_sharing_groups: dict[str, SlotSharingGroup] = {}
        self._cached_files: dict[str, tuple[str, str, bool]] = {}
        self._transformations: list[Transformation] = []
        self.caches: list[CachedRecords] = []
        self._last_id = 0
        self._has_run = False
        self.executed_in_parts: set[Transformation] = set()
        self._collecting: list[CloseableIterator[Any]] = []
        self._epoch_listeners: list[EpochListener] = []
        if configuration is not None:
            self.configure(configuration)
        interception.environment_made(self)

    # -- settings

    def get_configuration(self) -> Configuration:
        """The settings of the program. Changes of this Configuration change the program."""
        return self._configuration

    def get_config(self) -> ExecutionConfig:
        """The settings as an ExecutionConfig. Its setters change the program."""
        from opchain.compiler.settings.execution_config import ExecutionConfig

        return ExecutionConfig(self._configuration)

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The settings of checkpoints. Its setters change the program."""
        from opchain.compiler.settings.checkpoint_config import CheckpointConfig

        return CheckpointConfig(self._configuration)

    def configure(self, configuration: Configuration) -> None:
        """Sets all keys of a configuration. Other keys keep their values.

        Known keys are checked. Unknown keys are stored without a check.

        Raises:
            ValueError: A known key has an invalid value. No key is set then.
        """
        checked(configuration, Configuration, "configure", "the configuration")
        # Imported late, because importing pydantic takes long, and a program without configuration does not need it.
        from opchain.compiler.settings.settings_reader import read_settings

        read_settings(configuration)
        self._configuration.add_all(configuration)

    def set_parallelism(self, parallelism: int) -> Self:
        """Sets the default parallelism of operators that are added later."""
        if checked(parallelism, int, "set_parallelism", "the parallelism") < 1:
            raise ValueError(
                f"{at_call('set_parallelism')}: the parallelism is {parallelism}; "
                "it must be at least 1"
            )
        self._configuration.set(pipeline_options.PARALLELISM, parallelism)
        return self

    def get_parallelism(self) -> int:
        """The parallelism of operators that do not set one. The default is 1.

        PyFlink's default is the machine's number of processors. Here a program has the same plan on every machine.
        """
        parallelism = self._configuration.get(pipeline_options.PARALLELISM, self._local_parallelism)
        # Flink's word for "not set" is -1, and ExecutionConfig.set_parallelism takes it.
        return self._local_parallelism if parallelism < 1 else parallelism

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Sets the default number of key groups of an operator, from 1 to 32768."""
        value = checked(max_parallelism, int, "set_max_parallelism", "the max parallelism")
        if not 1 <= value <= MAX_PARALLELISM_LIMIT:
            raise ValueError(
                f"{at_call('set_max_parallelism')}: the max parallelism is {value}; "
                f"it must be between 1 and {MAX_PARALLELISM_LIMIT}"
            )
        self._configuration.set(pipeline_options.MAX_PARALLELISM, value)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups. -1 derives it from the parallelism of each operator."""
        return self._configuration.get(pipeline_options.MAX_PARALLELISM, UNSET)

    def get_default_local_parallelism(self) -> int:
        """The default parallelism of new environments. It is 1 unless changed."""
        return StreamExecutionEnvironment._default_local_parallelism

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Sets the default parallelism of environments that are created later."""
        call = "set_default_local_parallelism"
        if checked(parallelism, int, call, "the parallelism") < 1:
            raise ValueError(
                f"{at_call(call)}: the parallelism is {parallelism}; it must be at least 1"
            )
        StreamExecutionEnvironment._default_local_parallelism = parallelism

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Sets STREAMING (the default), BATCH, or AUTOMATIC, which means BATCH if all sources are bounded."""
        from opchain.compiler.settings.execution_config import RuntimeExecutionMode

        checked(execution_mode, RuntimeExecutionMode, "set_runtime_mode", "the mode")
        self._configuration.set(pipeline_options.RUNTIME_MODE, execution_mode.name)
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Sets how long a record may wait in a buffer, in milliseconds.

        0 flushes after each record; -1 sends only full buffers.
        """
        timeout = checked(timeout_millis, int, "set_buffer_timeout", "the timeout")
        if timeout < _FLUSH_WHEN_FULL:
            raise ValueError(
                f"{at_call('set_buffer_timeout')}: the timeout is {timeout} ms; "
                "it must be -1 or more"
            )
        self._configuration.set(
            pipeline_options.BUFFER_TIMEOUT_ENABLED, timeout != _FLUSH_WHEN_FULL
        )
        if timeout != _FLUSH_WHEN_FULL:
            self._configuration.set(pipeline_options.BUFFER_TIMEOUT, Duration.of_millis(timeout))
        return self

    def get_buffer_timeout(self) -> int:
        """How long a record may wait in a buffer, in milliseconds. -1 sends only full buffers."""
        if not self._configuration.get(pipeline_options.BUFFER_TIMEOUT_ENABLED):
            return _FLUSH_WHEN_FULL
        timeout = self._configuration.get(pipeline_options.BUFFER_TIMEOUT)
        return _FLUSH_WHEN_FULL if timeout is None else timeout.to_millis()

    def disable_operator_chaining(self) -> Self:
        """Disables chaining: every operator becomes a separate vertex."""
        self._configuration.set(pipeline_options.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether several operators may share a vertex."""
        return bool(self._configuration.get(pipeline_options.OPERATOR_CHAINING))

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Whether operators with different max parallelisms may share a vertex."""
        return bool(self._configuration.get(pipeline_options.CHAIN_DIFFERENT_MAX_PARALLELISM))

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Registers a slot sharing group with its resources. Operators refer to the group by its name.

        A group without resources needs no registration.

        Raises:
            GraphError: A group of that name is registered with other resources.
        """
        self._register(slot_sharing_group, "register_slot_sharing_group")
        return self

    def slot_sharing_group_name(self, group: str | SlotSharingGroup) -> str:
        """The name of the group. A group with resources is registered."""
        call = "slot_sharing_group"
        if isinstance(group, str):
            if not group:
                raise ValueError(f"{at_call(call)}: the group's name is empty")
            return group
        self._register(group, call)
        return group.get_name()

    def _register(self, group: SlotSharingGroup, call: str) -> None:
        from opchain.compiler.settings.slot_sharing_group import SlotSharingGroup

        checked(group, SlotSharingGroup, call, "the group")
        if group.get_cpu_cores() is None:
            return
        name = group.get_name()
        known = self._slot_sharing_groups.setdefault(name, group)
        if known != group:
            raise GraphError(
                f"{at_call(call)}: slot sharing group '{name}' is already registered with other "
                f"resources: {known!r}, not {group!r}; use one of the two"
            )

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> Self:
        """Takes a checkpoint every `interval` milliseconds."""
        config = self.get_checkpoint_config()
        config.set_checkpoint_interval(interval)
        if mode is not None:
            config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """The time between checkpoints in milliseconds, or -1 if checkpointing is disabled."""
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """EXACTLY_ONCE or AT_LEAST_ONCE; see `CheckpointConfig.get_checkpointing_mode`."""
        return self.get_checkpointing_consistency_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """The same as `get_checkpointing_mode`."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether unaligned checkpoints were enabled. The setting has no effect: all checkpoints are aligned."""
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether unaligned checkpoints are forced; see `is_unaligned_checkpoints_enabled`."""
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """Sets the state backend. By default, keyed state is in memory; RocksDB keeps it on the executors' disks.

        This is a method of PyFlink 1. PyFlink 2 only has the configuration key `state.backend.type`.
        """
        from opchain.compiler.settings.state_backend import (
            EmbeddedRocksDBStateBackend,
            StateBackend,
        )

        warn_of_old_spelling("set_state_backend()", "set 'state.backend.type' in the Configuration")
        checked(state_backend, StateBackend, "set_state_backend", "the backend")
        folder = getattr(state_backend, "checkpoint_path", None)  # of PyFlink 1's backends
        if folder is not None:
            self._configuration.set_string("execution.checkpointing.dir", folder)
        if isinstance(state_backend, EmbeddedRocksDBStateBackend):
            self._configuration.set(pipeline_options.STATE_BACKEND, "rocksdb")
            folders = state_backend.get_db_storage_paths()
            if folders:
                self._configuration.set(pipeline_options.STATE_FOLDERS, ",".join(folders))
        else:
            self._configuration.set(pipeline_options.STATE_BACKEND, "hashmap")
        return self

    def get_state_backend(self) -> StateBackend:
        """The state backend of the configuration. This is a method of PyFlink 1."""
        from opchain.compiler.settings.state_backend import (
            EmbeddedRocksDBStateBackend,
            HashMapStateBackend,
        )

        warn_of_old_spelling(
            "get_state_backend()", "read 'state.backend.type' of the Configuration"
        )
        kind = self._configuration.get(pipeline_options.STATE_BACKEND)
        return EmbeddedRocksDBStateBackend() if kind == "rocksdb" else HashMapStateBackend()

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Accepted without effect; see `is_changelog_state_backend_enabled`."""
        checked(enabled, bool, "enable_changelog_state_backend", "the switch")
        self._configuration.set(pipeline_options.CHANGELOG_ENABLED, enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """The value that was set, or None. It has no effect, since checkpoints are always incremental."""
        return self._configuration.get(pipeline_options.CHANGELOG_ENABLED)

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """Sets the directory for savepoints that are taken without a directory."""
        checked(directory, str, "set_default_savepoint_directory", "the directory")
        self._configuration.set(pipeline_options.SAVEPOINT_DIRECTORY, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """The default directory for savepoints; None if not set."""
        return self._configuration.get(pipeline_options.SAVEPOINT_DIRECTORY)

    # -- files and packages that executors need

    def add_python_file(self, file_path: str) -> None:
        """Puts a .py file, a package folder or a zip on the executors' Python path."""
        self._append(_FILES, checked(file_path, str, "add_python_file", "the path"))

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """Sets a requirements.txt, whose packages are installed for tasks on this machine. A cluster refuses it.

        The optional folder holds downloaded packages, for executors without network.
        """
        call = "set_python_requirements"
        checked(requirements_file_path, str, call, "the path")
        self._configuration.set_string(
            "python.requirements", _joined(requirements_file_path, requirements_cache_dir, call)
        )

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Adds an archive. Executors unpack it into `target_dir`, or into a folder named after the archive."""
        checked(archive_path, str, "add_python_archive", "the path")
        self._append(_ARCHIVES, _joined(archive_path, target_dir, "add_python_archive"))

    def set_python_executable(self, python_exec: str) -> None:
        """Sets the executors' Python interpreter."""
        checked(python_exec, str, "set_python_executable", "the path")
        self._configuration.set_string("python.executable", python_exec)

    def add_jars(self, *jars_path: str) -> None:
        """Adds jars, such as a JDBC driver, to the Spark application."""
        self._extend("pipeline.jars", jars_path, "add_jars")

    def add_classpaths(self, *classpaths: str) -> None:
        """Adds URLs to the class path of the Spark application."""
        self._extend("pipeline.classpaths", classpaths, "add_classpaths")

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Copies a file or folder to every executor. Functions find it there under the name.

        Raises:
            ValueError: The name is registered for another file.
        """
        for what, value in (("the path", file_path), ("the name", name)):
            checked(value, str, "register_cached_file", what)
        entry = (file_path, name, executable)
        known = self._cached_files.setdefault(name, entry)
        if known != entry:
            raise ValueError(
                f"{at_call('register_cached_file')}: the name '{name}' already refers to "
                f"{known[0]!r}; choose another name for {file_path!r}"
            )

    def _append(self, key: str, path: str) -> None:
        known = self._configuration.get_string(key, "")
        self._configuration.set_string(key, f"{known}{_BETWEEN_FILES}{path}" if known else path)

    def _extend(self, key: str, paths: tuple[str, ...], call: str) -> None:
        for path in paths:
            checked(path, str, call, "a path")
        known = self._configuration.parse_list_value(self._configuration.get_string(key, ""))
        self._configuration.set_string(key, ";".join([*known, *paths]))

    # -- sources; a source that no operator reads is not part of the program, as in Flink

    def from_source(
        self,
        source: Source[T],
        watermark_strategy: WatermarkStrategy[Any],
        source_name: str,
        type_info: DeclaredType = None,
    ) -> DataStream[T]:
        """A stream of the records of a Source, with timestamps and watermarks of the strategy.

        Without `type_info`, the records have the type that the source declares, if any.
        """
        call = "from_source"
        checked_function(source, Source, call)
        checked(watermark_strategy, WatermarkStrategy, call, "the watermark strategy")
        checked(source_name, str, call, "the source's name")
        if type_info is None:
            type_info = source.get_produced_type()
        # A later with_timestamp_assigner() changes the program's own object.
        spec = SourceSpec(source, copy(watermark_strategy))
        return self._begin(spec, source_name, type_info, call)

    def from_dataframe(
        self,
        dataframe: Any,
        watermark_strategy: WatermarkStrategy[Any] | None = None,
        source_name: str = "DataFrame",
    ) -> DataStream[Any]:
        """The rows of a Spark DataFrame, as Rows with its column names and types.

        A streaming DataFrame is an unbounded source.

        Each subtask reads a contiguous range of the partitions. To keep partitions apart, give the source as many
        subtasks as the DataFrame has partitions. The DataFrame is computed in the first stage of the job. Only an
        adaptive plan runs its shuffles earlier.

        Flink: `StreamTableEnvironment.toDataStream` of a table.

        Args:
            dataframe: A DataFrame of a classic Spark session. It is not computed yet.
            watermark_strategy: Assigns timestamps and watermarks to the rows; None for no event time.
            source_name: The name of the source in plans.

        Raises:
            GraphError: The argument is not such a DataFrame.
            UnsupportedFeatureError: The type of a column is not supported.
        """
        call = "from_dataframe"
        checked(source_name, str, call, "the source's name")
        strategy = WatermarkStrategy.no_watermarks()
        if watermark_strategy is not None:
            strategy = copy(
                checked(watermark_strategy, WatermarkStrategy, call, "the watermark strategy")
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
        """A stream of a SourceFunction. The planner treats it as unbounded.

        It runs in one subtask, unless it is a ParallelSourceFunction.
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

        The records are read in this call and are sent with the program. As in PyFlink, a declared type converts them:
        with a row type, tuples become rows.

        Flink: a legacy source, as in PyFlink. `from_data` creates a new-style source.
        """
        call = "from_collection"
        record_type = type_of(type_info, call)
        source = CollectionSource(_records(collection, record_type, call))
        spec = InputFormatSourceSpec(source, is_parallel=True, is_bounded=True)
        return self._begin(spec, "Collection Source", record_type, call).force_non_parallel()

    def from_elements(self, *data: T) -> DataStream[T]:
        """A bounded stream of the arguments; see `from_collection`. In Flink, only the Java API has this method."""
        _require_records(data, "from_elements")
        return self.from_collection(data)

    def from_data(self, *data: T, type_info: DeclaredType = None) -> DataStream[T]:
        """A bounded stream of the arguments, or of one list of records.

        Unlike `from_collection`, it supports a higher parallelism: each subtask emits a contiguous part. In Flink, only
        the Java API has this method. Flink: DataGeneratorSource.
        """
        records: Any = data[0] if len(data) == 1 and isinstance(data[0], (list, range)) else data
        record_type = type_of(type_info, "from_data")
        found = _require_records(_records(records, record_type, "from_data"), "from_data")
        source = CollectionSource(found)
        # Flink passes a strategy too, but the records have no timestamps, so it has no effect.
        return self._begin(
            SourceSpec(source), "Collection Source", type_info, "from_data"
        ).set_parallelism(1)

    def from_sequence(self, start: int, end: int) -> DataStream[int]:
        """The numbers from `start` to `end`, both included. Each subtask emits a contiguous part.

        In Flink, only the Java API has this method.
        """
        source = NumberSequenceSource(start, end)
        return self._begin(SourceSpec(source), "Sequence Source", None, "from_sequence")

    def generate_sequence(self, start: int, end: int) -> DataStream[int]:
        """The numbers from `start` to `end`, as a legacy source: subtask i of n emits every n-th number.

        In Flink, only the Java API has this method, and it is deprecated: use `from_sequence`.
        """
        from opchain.runtime.connectors.collection import StatefulSequenceSource

        return self.add_source(StatefulSequenceSource(start, end), "Sequence Source (Deprecated)")

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream[str]:
        """The lines of a file, of all files in a folder, or of all files that match a pattern.

        Several subtasks read large files in parts. Flink 2.0 removed this method. It calls `from_source` with a file
        source.
        """
        warn_of_old_spelling(
            "read_text_file()",
            "call from_source() with FileSource.for_record_stream_format(StreamFormat.text_line_format(), path)",
        )
        source = TextLineSource(file_path, charset_name=charset_name)
        return self._begin(SourceSpec(source), "Text File Source", None, "read_text_file")

    def create_input(self, input_format: Any, type_info: DeclaredType = None) -> DataStream[Any]:
        """A bounded stream of an AvroInputFormat or of any other bounded Source, as a legacy source.

        Flink uses two operators for files: one lists them, the other reads them.

        Raises:
            UnsupportedFeatureError: The argument is a Java InputFormat.
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
        """The texts that a server sends, split at the delimiter. One subtask reads them.

        The stream ends when the server closes the connection and `max_retry` reconnects have failed; -1 retries
        forever. In Flink, only the Java API has this method.
        """
        from opchain.runtime.connectors.socket_source import (
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
        return DataStream(self, transformation)

    # -- the program and its plans

    def add_operator(self, transformation: Transformation) -> None:
        """Adds a transformation, with all its inputs, to the program.

        Flink: `StreamExecutionEnvironment.addOperator`. The methods of streams call it.
        """
        self._transformations.append(transformation)

    def get_transformations(self) -> list[Transformation]:
        """A list of the operators and sinks of the program, in the order of the calls."""
        return list(self._transformations)

    def next_transformation_id(self) -> int:
        """A new id. Each environment counts from 1; Flink counts per JVM."""
        self._last_id += 1
        return self._last_id

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_j_"):
                instead = (
                    "get_configuration() has all settings, configure() changes them, and socket_text_stream() reads "
                    "a socket"
                )
                raise no_java_attribute(self, name, instead)
            raise AttributeError(f"a {type(self).__name__} has no attribute {name!r}")

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | None = None,
    ) -> StreamExecutionEnvironment:
        """A new environment with these settings. The key `execution.target` decides where its jobs run."""
        return StreamExecutionEnvironment(configuration)

    def register_collect_iterator(self, iterator: CloseableIterator[Any]) -> None:
        """Registers an iterator for records of the next job. Flink has a method of the same name."""
        self._collecting.append(iterator)

    def add_epoch_listener(self, listener: EpochListener) -> None:
        """Calls a function with the EpochProgress of each epoch of the unbounded jobs of this environment.

        Not in Flink.

        The driver calls the function after the sinks of the epoch have committed. The next epoch waits for it.
        Exceptions of the function are logged. The job client offers the same data as `last_progress` and
        `recent_progress`. Spark's StreamingQueryListeners also get events of the query, whose name begins with that of
        the job.
        """
        if not callable(listener):
            raise TypeError(f"add_epoch_listener() takes a function, not {listener!r}")
        self._epoch_listeners.append(listener)

    def detached_program(self, end: Transformation) -> Program:
        """The program upstream of a transformation.

        Operators that only this program uses are removed from the environment.
        """
        program = replace(self.program(), transformations=(end,))
        upstream = set(upstream_of(end))
        self._transformations[:] = [each for each in self._transformations if each not in upstream]
        return program

    def detached_part(self, earlier: Sequence[Transformation], *ends: Transformation) -> Program:
        """The program of the transformations that are not earlier ones, which are removed, and of `ends`."""
        part, self._transformations[:] = self._parts(earlier)
        part += [each for each in ends if each not in part]
        return replace(self.program(), transformations=tuple(part))

    def program(self, job_name: str | None = None) -> Program:
        """The current transformations and settings, as input of the compiler."""
        from opchain.compiler.graph.plan import Program
        from opchain.compiler.ineffective_settings import unused_keys
        from opchain.compiler.settings.settings_reader import read_settings

        settings = read_settings(self._configuration)
        fixed: dict[str, Any] = {"parallelism": self.get_parallelism()}
        if job_name is not None:
            fixed["job_name"] = checked(job_name, str, "execute", "the job's name")
        return Program(
            transformations=tuple(self._transformations),
            settings=settings.model_copy(update=fixed),
            next_id=self._last_id + 1,
            slot_group_resources=dict(self._slot_sharing_groups),
            cached_files=tuple(self._cached_files.values()),
            epoch_listeners=tuple(self._epoch_listeners),
            unused_keys=unused_keys(self._configuration, settings),
        )

    @overload
    def explain(self, stage: Literal["job-graph"] = "job-graph") -> ShownPlan: ...

    @overload
    def explain(self, stage: str) -> ShownText: ...

    def explain(self, stage: str = "job-graph") -> ShownText:
        """The program as text, after one stage of compilation.

        A notebook shows the job graph as an interactive page. `env.explain().page()` returns this page as HTML, and
        `with_numbers(result.metrics)` adds the metrics of a job to it.

        Args:
            stage: `stream-graph`, `job-graph`, `execution` or `generated`.
        """
        from opchain.compiler.plan.explain import explain
        from opchain.compiler.plan.page.render import shown

        program = self.program()
        return shown(explain(program, stage), stage, program)

    def _repr_html_(self) -> str:
        """For notebooks: the settings, and a picture of the program so far."""
        from opchain.compiler.plan.page.render import environment_cell

        return environment_cell(self.program())

    def get_execution_plan(self) -> str:
        """The operators of the program as Flink's JSON plan, for Flink's plan visualizer.

        `opchain plan --format flink-json` prints the plan after chaining.
        """
        from opchain.compiler.plan.flink_json import streaming_plan

        return json.dumps(streaming_plan(self.get_stream_graph()), indent=2)

    def get_stream_graph(self) -> StreamGraph:
        """The operators and edges of the program before chaining. `to_networkx()` returns them as a plain graph.

        The environment keeps its transformations. Flink: `getStreamGraph(false)`. Not in PyFlink.
        """
        from opchain.compiler.graph.plan import required
        from opchain.compiler.passes.pipeline import compile_program

        return required(compile_program(self.program(), "stream-graph").stream_graph)

    def get_job_graph(self) -> JobGraph:
        """The vertices and edges of the compiled program. `to_networkx()` returns them as a plain graph.

        The environment keeps its transformations. Flink: `getStreamGraph(false).getJobGraph()`. Not in PyFlink.
        """
        from opchain.compiler.graph.plan import required
        from opchain.compiler.passes.pipeline import compile_program

        return required(compile_program(self.program(), "job-graph").job_graph)

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Runs the program as a job, and waits until the job ends.

        As in Flink, the environment is empty afterwards: later calls define a new job.
        """
        client = self._submitted(job_name, "execute", wait=True)
        return client.get_job_execution_result().result()

    def execute_async(self, job_name: str = "Flink Streaming Job") -> JobClient:
        """Starts the program as a job. Returns a client that watches, cancels or awaits the job."""
        return self._submitted(job_name, "execute_async")

    def _parts(
        self, earlier: Sequence[Transformation]
    ) -> tuple[list[Transformation], list[Transformation]]:
        """The transformations that are not earlier ones, and the others."""
        known = set(earlier)
        part = [each for each in self._transformations if each not in known]
        return part, [each for each in self._transformations if each in known]

    def execute_part(self, earlier: Sequence[Transformation], job_name: str) -> JobClient:
        """Starts the transformations that are not earlier ones as a separate job.

        Earlier transformations stay in the environment.

        Flink: `TableEnvironment.executeSql` with an INSERT.
        """
        part, rest = self._parts(earlier)
        self._transformations[:] = part
        try:
            client = self._submitted(job_name, "execute_sql")
            self.executed_in_parts.update(upstream_of(*part))
            return client
        finally:
            self._transformations[:] = rest

    def close(self) -> None:
        """Drops the records of cached streams. The environment can still be used."""
        for records in self.caches:
            records.parts = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _submitted(
        self, job_name: str | None, method: str, *, wait: bool = False
    ) -> JobRun | CapturedJobClient:
        if not self._transformations:
            since = " since the last execute()" if self._has_run else ""
            raise GraphError(
                f"{at_call(method)}: there is nothing to run, because the program has added no operator{since}; add an "
                "operator or a sink first (a source alone does nothing)"
            )
        program = self.program(job_name)
        self._transformations.clear()
        self._has_run = True
        client = self._started(program, method, wait=wait)
        started = [each for each in self._collecting if each.sink in program.transformations]
        for iterator in started:
            iterator.attach(client)
        self._collecting[:] = [each for each in self._collecting if each not in started]
        return client

    def _started(self, program: Program, method: str, *, wait: bool) -> JobRun | CapturedJobClient:
        if interception.job_intercepted(program, method):
            return CapturedJobClient()
        from opchain.compiler.execution import submit
        from opchain.compiler.monitoring.progress import is_in_notebook, progress_in_cell

        with progress_in_cell() if wait and is_in_notebook() else nullcontext():
            return submit(program, wait=wait)
