"""Classes and methods of PyFlink 1.16 to 1.20 that PyFlink 2 no longer has.

All of them work, and emit a DeprecationWarning that names the replacement in PyFlink 2. Settings of Kryo have no
effect, because Kryo serializes Java objects.
"""

# ruff: noqa: PLC0415 - settings that a program does not use are not imported.

from __future__ import annotations

import warnings
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from opchain.compiler.settings.state_backend import (
    CheckpointStorage,
    EmbeddedRocksDBStateBackend,
    FileSystemCheckpointStorage,
    HashMapStateBackend,
    JobManagerCheckpointStorage,
)
from opchain.runtime.errors import short_repr
from opchain.runtime.time import Duration

if TYPE_CHECKING:
    from typing_extensions import Self

    from opchain.compiler.settings.checkpoint_config import (
        ExternalizedCheckpointRetention,
    )
    from opchain.compiler.settings.execution_config import (
        ExecutionConfig,
        InputDependencyConstraint,
    )
    from opchain.compiler.settings.restart_strategy import RestartStrategyConfiguration
    from opchain.runtime.configuration.configuration import Configuration

_CHECKPOINT_FOLDER = "execution.checkpointing.dir"
_RESTARTS = "set 'restart-strategy.type' and its keys in the Configuration"
_KRYO = "Kryo serializes Java objects only, and the call does nothing"


def warn_of_old_spelling(call: str, instead: str) -> None:
    """Emits a DeprecationWarning for a call of PyFlink 1, at the user's line."""
    warnings.warn(f"{call} is of PyFlink 1: {instead}", DeprecationWarning, stacklevel=3)


class TimeCharacteristic(Enum):
    """The kind of time that a program uses."""

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2


class ExecutionMode(Enum):
    """How data moves between the vertices of a batch program."""

    PIPELINED = 0
    PIPELINED_FORCED = 1
    BATCH = 2
    BATCH_FORCED = 3


class MemoryStateBackend(HashMapStateBackend):
    """Keeps state in memory, and checkpoints in the memory of the driver."""

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = 5 * 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        savepoint_path: str | None = None,
        max_state_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        self.checkpoint_path = checkpoint_path
        self.savepoint_path = savepoint_path
        self._max_state_size = max_state_size or self.DEFAULT_MAX_STATE_SIZE
        self._asynchronous = using_asynchronous_snapshots is not False

    def get_max_state_size(self) -> int:
        """The maximum size of a state in bytes."""
        return self._max_state_size

    def is_using_asynchronous_snapshots(self) -> bool:
        """The value that was passed. It has no effect."""
        return self._asynchronous


class FsStateBackend(HashMapStateBackend):
    """Keeps state in memory, and checkpoints in a folder."""

    def __init__(
        self,
        checkpoint_directory_uri: str | None = None,
        default_savepoint_directory_uri: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        self._storage = FileSystemCheckpointStorage(
            checkpoint_directory_uri, file_state_size_threshold, write_buffer_size or -1
        )
        self.checkpoint_path = self._storage.get_checkpoint_path()
        self.savepoint_path = default_savepoint_directory_uri
        self._asynchronous = using_asynchronous_snapshots is not False

    def get_checkpoint_path(self) -> str:
        """The folder of checkpoints."""
        return self.checkpoint_path

    def get_min_file_size_threshold(self) -> int:
        """The size in bytes below which state is stored in the metadata file."""
        return self._storage.get_min_file_size_threshold()

    def get_write_buffer_size(self) -> int:
        """The size of the write buffer in bytes."""
        return self._storage.get_write_buffer_size()

    def is_using_asynchronous_snapshots(self) -> bool:
        """The value that was passed. It has no effect."""
        return self._asynchronous


class RocksDBStateBackend(EmbeddedRocksDBStateBackend):
    """Keeps state on the local disks, and checkpoints in a folder."""

    def __init__(
        self,
        checkpoint_data_uri: str | None = None,
        enable_incremental_checkpointing: bool | None = None,
        checkpoint_stream_backend: Any = None,
    ) -> None:
        super().__init__(enable_incremental_checkpointing)
        backend = checkpoint_stream_backend or FsStateBackend(checkpoint_data_uri)
        self._checkpoint_backend = backend
        self.checkpoint_path = backend.checkpoint_path
        self.savepoint_path = backend.savepoint_path

    def get_checkpoint_backend(self) -> Any:
        """The backend that sets the checkpoint folder."""
        return self._checkpoint_backend


def _restart_strategy(configuration: Configuration) -> RestartStrategyConfiguration:
    """The restart strategy of the configuration."""
    from opchain.compiler.settings.restart_strategy import RestartStrategies

    def duration(key: str, unset: str) -> timedelta:
        text = str(configuration.get_string(f"restart-strategy.{key}", unset))
        return timedelta(milliseconds=Duration.parse(text).to_millis())

    kind = configuration.get_string("restart-strategy.type", "")
    if kind == "none":
        return RestartStrategies.no_restart()
    if kind == "fixed-delay":
        attempts = configuration.get_integer("restart-strategy.fixed-delay.attempts", 1)
        attempts = configuration.get_integer(
            "restart-strategy.fixed-delay.restart-attempts", attempts
        )
        return RestartStrategies.fixed_delay_restart(attempts, duration("fixed-delay.delay", "1 s"))
    if kind == "failure-rate":
        key = "restart-strategy.failure-rate.max-failures-per-interval"
        return RestartStrategies.failure_rate_restart(
            configuration.get_integer(key, 1),
            duration("failure-rate.failure-rate-interval", "1 min"),
            duration("failure-rate.delay", "1 s"),
        )
    return RestartStrategies.fall_back_restart()


def _settings_of(strategy: RestartStrategyConfiguration) -> Configuration:
    """The settings of a restart strategy.

    Raises:
        TypeError: It is something else.
    """
    from opchain.compiler.settings.restart_strategy import RestartStrategyConfiguration

    if not isinstance(strategy, RestartStrategyConfiguration):
        raise TypeError(
            f"set_restart_strategy() takes a strategy of RestartStrategies, not {short_repr(strategy)}"
        )
    return strategy.to_configuration()


class OldExecutionConfig:
    """Methods of PyFlink 1's ExecutionConfig."""

    _configuration: Configuration

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """The restart strategy of the configuration."""
        warn_of_old_spelling("ExecutionConfig.get_restart_strategy()", _RESTARTS)
        return _restart_strategy(self._configuration)

    def set_restart_strategy(
        self, restart_strategy_configuration: RestartStrategyConfiguration
    ) -> Self:
        """Sets whether, how often and when a failed job is restarted."""
        warn_of_old_spelling("ExecutionConfig.set_restart_strategy()", _RESTARTS)
        self._configuration.add_all(_settings_of(restart_strategy_configuration))
        return self

    def set_execution_mode(self, execution_mode: ExecutionMode) -> Self:
        """Stores the value. It has no effect: Spark's shuffles decide how data is exchanged."""
        warn_of_old_spelling("set_execution_mode()", "call set_runtime_mode() of the environment")
        self._configuration.set_string("pyflink-1.execution-mode", execution_mode.name)
        return self

    def get_execution_mode(self) -> ExecutionMode:
        """The value that was set; PIPELINED by default."""
        warn_of_old_spelling("get_execution_mode()", "there is set_runtime_mode()")
        name = self._configuration.get_string("pyflink-1.execution-mode", "PIPELINED")
        return ExecutionMode[str(name)]

    def set_default_input_dependency_constraint(
        self, input_dependency_constraint: InputDependencyConstraint
    ) -> Self:
        """Stores the value. It has no effect: Spark starts a stage when all its inputs are complete."""
        warn_of_old_spelling("set_default_input_dependency_constraint()", "leave the call out")
        self._configuration.set_string(
            "pyflink-1.input-dependency-constraint", input_dependency_constraint.name
        )
        return self

    def get_default_input_dependency_constraint(self) -> InputDependencyConstraint:
        """The value that was set; ANY by default."""
        from opchain.compiler.settings.execution_config import (
            InputDependencyConstraint,
        )

        warn_of_old_spelling("get_default_input_dependency_constraint()", "leave the call out")
        key = "pyflink-1.input-dependency-constraint"
        return InputDependencyConstraint[str(self._configuration.get_string(key, "ANY"))]

    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> Self:  # noqa: ARG002
        """Accepted without effect: Kryo serializes Java objects only."""
        warn_of_old_spelling("add_default_kryo_serializer()", _KRYO)
        return self

    def register_type_with_kryo_serializer(
        self,
        type_class_name: str,  # noqa: ARG002
        serializer_class_name: str,  # noqa: ARG002
    ) -> Self:
        """Accepted without effect: Kryo serializes Java objects only."""
        warn_of_old_spelling("register_type_with_kryo_serializer()", _KRYO)
        return self

    def register_pojo_type(self, type_class_name: str) -> Self:  # noqa: ARG002
        """Accepted without effect: it registers Java classes."""
        warn_of_old_spelling("register_pojo_type()", _KRYO)
        return self

    def register_kryo_type(self, type_class_name: str) -> Self:  # noqa: ARG002
        """Accepted without effect: it registers Java classes."""
        warn_of_old_spelling("register_kryo_type()", _KRYO)
        return self

    def get_registered_types_with_kryo_serializer_classes(self) -> dict[str, str]:
        """Always empty."""
        warn_of_old_spelling("get_registered_types_with_kryo_serializer_classes()", _KRYO)
        return {}

    def is_auto_type_registration_disabled(self) -> bool:
        """Always False."""
        warn_of_old_spelling("is_auto_type_registration_disabled()", _KRYO)
        return False

    def disable_auto_type_registration(self) -> Self:
        """Accepted without effect: it concerns Java classes."""
        warn_of_old_spelling("disable_auto_type_registration()", _KRYO)
        return self


class OldCheckpointConfig:
    """Methods of PyFlink 1's CheckpointConfig."""

    DEFAULT_TIMEOUT: ClassVar[int] = 10 * 60 * 1000
    DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS: ClassVar[int] = 0
    DEFAULT_MAX_CONCURRENT_CHECKPOINTS: ClassVar[int] = 1

    _configuration: Configuration

    def enable_externalized_checkpoints(
        self,
        cleanup_mode: ExternalizedCheckpointRetention,
    ) -> Self:
        """Sets whether checkpoints are deleted when the job is cancelled."""
        warn_of_old_spelling(
            "enable_externalized_checkpoints()", "call set_externalized_checkpoint_retention()"
        )
        from opchain.compiler.settings.checkpoint_config import RETENTION

        self._configuration.set(RETENTION, cleanup_mode)
        return self

    def set_externalized_checkpoint_cleanup(
        self,
        cleanup_mode: ExternalizedCheckpointRetention,
    ) -> Self:
        """Sets whether checkpoints are deleted when the job is cancelled."""
        warn_of_old_spelling(
            "set_externalized_checkpoint_cleanup()", "call set_externalized_checkpoint_retention()"
        )
        from opchain.compiler.settings.checkpoint_config import RETENTION

        self._configuration.set(RETENTION, cleanup_mode)
        return self

    def get_externalized_checkpoint_cleanup(self) -> ExternalizedCheckpointRetention:
        """The retention of checkpoints after the job is cancelled."""
        warn_of_old_spelling(
            "get_externalized_checkpoint_cleanup()", "call get_externalized_checkpoint_retention()"
        )
        from opchain.compiler.settings.checkpoint_config import RETENTION

        return self._configuration.get(RETENTION)

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> Self:
        """Sets the storage of checkpoints."""
        warn_of_old_spelling(
            "set_checkpoint_storage()", f"set {_CHECKPOINT_FOLDER!r} in the Configuration"
        )
        folder = getattr(storage, "get_checkpoint_path", lambda: None)()
        if folder is not None:
            self._configuration.set_string(_CHECKPOINT_FOLDER, folder)
        return self

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> Self:
        """Sets the folder of checkpoints."""
        warn_of_old_spelling(
            "set_checkpoint_storage_dir()", f"set {_CHECKPOINT_FOLDER!r} in the Configuration"
        )
        if not isinstance(checkpoint_path, str):
            raise TypeError(
                f"set_checkpoint_storage_dir() takes a path or URL as a str, not {short_repr(checkpoint_path)}"
            )
        storage = FileSystemCheckpointStorage(checkpoint_path)
        self._configuration.set_string(_CHECKPOINT_FOLDER, storage.get_checkpoint_path())
        return self

    def get_checkpoint_storage(self) -> CheckpointStorage:
        """The checkpoint storage."""
        warn_of_old_spelling(
            "get_checkpoint_storage()", f"read {_CHECKPOINT_FOLDER!r} of the Configuration"
        )
        folder = self._configuration.get_string(_CHECKPOINT_FOLDER, "")
        return FileSystemCheckpointStorage(folder) if folder else JobManagerCheckpointStorage()


class OldEnvironmentCalls:
    """Methods of PyFlink 1's StreamExecutionEnvironment."""

    _configuration: Configuration

    def get_config(self) -> ExecutionConfig:
        """The settings as PyFlink's ExecutionConfig."""
        raise NotImplementedError

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> None:
        """Sets the interval of periodic watermarks: none in processing time, and 200 ms otherwise."""
        warn_of_old_spelling(
            "set_stream_time_characteristic()",
            "PyFlink 2 works in event time where assign_timestamps_and_watermarks() is called",
        )
        if not isinstance(characteristic, TimeCharacteristic):
            raise TypeError(
                f"set_stream_time_characteristic() takes a TimeCharacteristic, not {characteristic!r}"
            )
        self._configuration.set_string("pyflink-1.time-characteristic", characteristic.name)
        is_processing_time = characteristic is TimeCharacteristic.ProcessingTime
        self.get_config().set_auto_watermark_interval(0 if is_processing_time else 200)

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """The value that was set; EventTime by default."""
        warn_of_old_spelling("get_stream_time_characteristic()", "leave the call out")
        key = "pyflink-1.time-characteristic"
        return TimeCharacteristic[str(self._configuration.get_string(key, "EventTime"))]

    def set_restart_strategy(
        self, restart_strategy_configuration: RestartStrategyConfiguration
    ) -> None:
        """Sets whether, how often and when a failed job is restarted."""
        warn_of_old_spelling("set_restart_strategy()", _RESTARTS)
        self._configuration.add_all(_settings_of(restart_strategy_configuration))

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """The restart strategy of the configuration."""
        warn_of_old_spelling("get_restart_strategy()", _RESTARTS)
        return _restart_strategy(self._configuration)

    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> None:  # noqa: ARG002
        """Accepted without effect: Kryo serializes Java objects only."""
        warn_of_old_spelling("add_default_kryo_serializer()", _KRYO)

    def register_type_with_kryo_serializer(
        self,
        type_class_name: str,  # noqa: ARG002
        serializer_class_name: str,  # noqa: ARG002
    ) -> None:
        """Accepted without effect: Kryo serializes Java objects only."""
        warn_of_old_spelling("register_type_with_kryo_serializer()", _KRYO)

    def register_type(self, type_class_name: str) -> None:  # noqa: ARG002
        """Accepted without effect: it registers Java classes."""
        warn_of_old_spelling("register_type()", _KRYO)
