"""ExecutionConfig, RuntimeExecutionMode and InputDependencyConstraint."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from opchain.compiler.settings import pipeline_options as options
from opchain.compiler.settings.old_spellings import OldExecutionConfig
from opchain.compiler.settings.pipeline_options import ClosureCleanerLevel
from opchain.runtime.configuration.configuration import Configuration
from opchain.runtime.errors import short_repr
from opchain.runtime.java_objects import no_java
from opchain.runtime.time import Duration

if TYPE_CHECKING:
    from opchain.runtime.configuration.options import ConfigOption


class RuntimeExecutionMode(Enum):
    """How a job processes its input: `set_runtime_mode`, or the key `execution.runtime-mode`."""

    STREAMING = 0
    """Emits each update immediately."""
    BATCH = 1
    """Emits only final results. All sources must be bounded."""
    AUTOMATIC = 2
    """BATCH if all sources are bounded, else STREAMING."""


class InputDependencyConstraint(Enum):
    """Whether a task starts when one input has data, or when all have.

    PyFlink still exports it; Flink 2 removed it. Spark starts a stage when all its inputs are complete, which is `ALL`.
    """

    ANY = 0
    ALL = 1


T = TypeVar("T")


class ExecutionConfig(OldExecutionConfig):
    """Settings of a program, as a view of its configuration: each method reads or writes one key.

    Two objects are equal if their configurations are equal. Each setter returns the same object.

    Some settings are only stored, because Flink programs use them: the closure cleaner (Python functions need none),
    and the interval and timeout of task cancellation (Spark has its own settings for this).

    Flink: ExecutionConfig.

    Args:
        configuration: The configuration to read and write. Default: a new one.
    """

    PARALLELISM_DEFAULT: ClassVar[int] = -1
    """As an argument of `set_parallelism`: the default of the environment."""

    PARALLELISM_UNKNOWN: ClassVar[int] = -2
    """As an argument of `set_parallelism`: keeps the current value."""

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def configure(self, configuration: Configuration) -> None:
        """Copies the keys of ExecutionConfig from a configuration, and ignores all others."""
        for option in options.EXECUTION_CONFIG_OPTIONS:
            if configuration.contains(option):
                self._write(option, configuration.get(option))

    def to_configuration(self) -> Configuration:
        """A copy of the underlying configuration."""
        return Configuration(self._configuration)

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Stores the setting. It has no effect."""
        return self._write(options.CLOSURE_CLEANER_LEVEL, ClosureCleanerLevel.RECURSIVE)

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Stores the setting. It has no effect."""
        return self._write(options.CLOSURE_CLEANER_LEVEL, ClosureCleanerLevel.NONE)

    def is_closure_cleaner_enabled(self) -> bool:
        """True unless it was disabled."""
        return self._read(options.CLOSURE_CLEANER_LEVEL) is not ClosureCleanerLevel.NONE

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Sets the interval of periodic watermarks in milliseconds; 0 disables them.

        Raises:
            ValueError: The interval is negative.
        """
        _require_at_least(0, "set_auto_watermark_interval", interval)
        return self._write(options.AUTO_WATERMARK_INTERVAL, Duration.of_millis(interval))

    def get_auto_watermark_interval(self) -> int:
        """The interval of periodic watermarks in milliseconds; 200 unless set."""
        return self._read(options.AUTO_WATERMARK_INTERVAL).to_millis()

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Sets the interval of latency markers of sources in milliseconds; 0 or less disables them."""
        return self._write(options.LATENCY_TRACKING_INTERVAL, Duration.of_millis(interval))

    def get_latency_tracking_interval(self) -> int:
        """The interval of latency markers of sources in milliseconds; 0 unless set."""
        return self._read(options.LATENCY_TRACKING_INTERVAL).to_millis()

    def get_parallelism(self) -> int:
        """The number of subtasks of operators that do not set one; 1 unless set."""
        return self._read(options.PARALLELISM)

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Sets the number of subtasks of operators that do not set one.

        Raises:
            ValueError: It is below 1 and neither PARALLELISM_DEFAULT nor PARALLELISM_UNKNOWN.
        """
        if parallelism == self.PARALLELISM_UNKNOWN:
            return self
        if parallelism != self.PARALLELISM_DEFAULT:
            _require_at_least(1, "set_parallelism", parallelism)
        return self._write(options.PARALLELISM, parallelism)

    def get_max_parallelism(self) -> int:
        """The number of key groups of operators that do not set one; -1 unless set."""
        return self._read(options.MAX_PARALLELISM)

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Sets the number of key groups. It is also the maximum parallelism for rescaling.

        Raises:
            ValueError: It is below 1.
        """
        _require_at_least(1, "set_max_parallelism", max_parallelism)
        return self._write(options.MAX_PARALLELISM, max_parallelism)

    def get_task_cancellation_interval(self) -> int:
        """The value in milliseconds; 30,000 unless set. It has no effect."""
        return self._read(options.TASK_CANCELLATION_INTERVAL).to_millis()

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Stores the value. It has no effect."""
        return self._write(options.TASK_CANCELLATION_INTERVAL, Duration.of_millis(interval))

    def get_task_cancellation_timeout(self) -> int:
        """The value in milliseconds; 180,000 unless set. It has no effect."""
        return self._read(options.TASK_CANCELLATION_TIMEOUT).to_millis()

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Stores the value. It has no effect.

        Raises:
            ValueError: The timeout is negative.
        """
        _require_at_least(0, "set_task_cancellation_timeout", timeout)
        return self._write(options.TASK_CANCELLATION_TIMEOUT, Duration.of_millis(timeout))

    def enable_force_kryo(self) -> ExecutionConfig:
        """Not supported: Kryo serializes Java objects.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise no_java("ExecutionConfig.enable_force_kryo()")

    def disable_force_kryo(self) -> ExecutionConfig:
        """Accepted without effect: Kryo is never used."""
        return self._write(options.FORCE_KRYO, False)

    def is_force_kryo_enabled(self) -> bool:
        """The value in the configuration. It has no effect."""
        return self._read(options.FORCE_KRYO)

    def enable_generic_types(self) -> ExecutionConfig:
        """Allows records of any class that can be pickled. This is the default."""
        return self._write(options.GENERIC_TYPES, True)

    def disable_generic_types(self) -> ExecutionConfig:
        """Requires a declared type for records that are sent to another task, other than a type for any object."""
        return self._write(options.GENERIC_TYPES, False)

    def has_generic_types_disabled(self) -> bool:
        """False unless they were disabled."""
        return not self._read(options.GENERIC_TYPES)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Generates ids for operators without a uid. This is the default."""
        return self._write(options.AUTO_GENERATE_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Requires a uid for every operator."""
        return self._write(options.AUTO_GENERATE_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """True unless they were disabled."""
        return self._read(options.AUTO_GENERATE_UIDS)

    def enable_force_avro(self) -> ExecutionConfig:
        """Not supported: the setting concerns Java objects.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise no_java("ExecutionConfig.enable_force_avro()")

    def disable_force_avro(self) -> ExecutionConfig:
        """Accepted without effect: Avro is never forced."""
        return self._write(options.FORCE_AVRO, False)

    def is_force_avro_enabled(self) -> bool:
        """The value in the configuration. It has no effect."""
        return self._read(options.FORCE_AVRO)

    def enable_object_reuse(self) -> ExecutionConfig:
        """Passes records along a chain without copies. Functions must not change or keep their input."""
        return self._write(options.OBJECT_REUSE, True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Copies mutable records between the operators of a chain."""
        return self._write(options.OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        """False unless it was enabled."""
        return self._read(options.OBJECT_REUSE)

    def get_global_job_parameters(self) -> dict[str, str]:
        """A copy of the parameters that all functions can read; empty unless set."""
        return self._read(options.GLOBAL_JOB_PARAMETERS)

    def set_global_job_parameters(
        self, global_job_parameters_dict: Mapping[str, Any]
    ) -> ExecutionConfig:
        """Sets the parameters that all functions can read. Values are converted to strings.

        Raises:
            TypeError: The parameters are not a mapping.
        """
        if not isinstance(global_job_parameters_dict, Mapping):
            raise TypeError(
                f"set_global_job_parameters({short_repr(global_job_parameters_dict)}): it must be a dictionary"
            )
        parameters = {
            key: value if isinstance(value, str) else str(value)
            for key, value in global_job_parameters_dict.items()
        }
        return self._write(options.GLOBAL_JOB_PARAMETERS, parameters)

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Empty: there are no Java classes to register."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Empty: there are no Java classes to register."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Empty: there are no Java classes to register."""
        return []

    def is_use_snapshot_compression(self) -> bool:
        """The value that was set; False by default."""
        return self._read(options.SNAPSHOT_COMPRESSION)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Sets whether keyed state is compressed in checkpoints and savepoints."""
        return self._write(options.SNAPSHOT_COMPRESSION, use_snapshot_compression)

    def _read(self, option: ConfigOption[T]) -> T:
        return self._configuration.get(option)

    def _write(self, option: ConfigOption[T], value: T) -> ExecutionConfig:
        self._configuration.set(option, value)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExecutionConfig):
            return NotImplemented
        return self._configuration == other._configuration

    def __hash__(self) -> int:
        return hash(frozenset(self._configuration.to_dict().items()))

    def __repr__(self) -> str:
        return f"ExecutionConfig({self._configuration})"


def _require_at_least(least: int, method: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{method}({short_repr(value)}): it must be an int")
    if value < least:
        raise ValueError(f"{method}({value}): it must be at least {least}")
