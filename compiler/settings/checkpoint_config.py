"""CheckpointConfig, its configuration keys, and the enums that it uses.

Flink: CheckpointingOptions.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, ClassVar, TypeVar

from opchain.compiler.settings import checkpoint_config as options
from opchain.compiler.settings.old_spellings import OldCheckpointConfig
from opchain.compiler.settings.pipeline_options import RUNTIME_MODE
from opchain.runtime.configuration.configuration import Configuration
from opchain.runtime.configuration.options import ConfigOption, ConfigOptions
from opchain.runtime.errors import short_repr
from opchain.runtime.time import Duration, Time, millis_of

if TYPE_CHECKING:
    from datetime import timedelta


class CheckpointingMode(Enum):
    """How often a record counts in state and sinks after a restart of the job.

    Here checkpoints are always exactly once: a checkpoint is the end of a micro-batch.
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1


class ExternalizedCheckpointRetention(Enum):
    """Which checkpoints are kept when the job ends."""

    DELETE_ON_CANCELLATION = 0
    """Checkpoints are deleted if the job is cancelled, and kept if it fails."""
    RETAIN_ON_CANCELLATION = 1
    """Checkpoints are kept. The user deletes them."""
    NO_EXTERNALIZED_CHECKPOINTS = 2
    """Checkpoints are deleted when the job ends."""


_PREFIX = "execution.checkpointing"

INTERVAL = ConfigOptions.key(f"{_PREFIX}.interval").duration_type().no_default_value()
MODE = (
    ConfigOptions.key(f"{_PREFIX}.mode")
    .enum_type(CheckpointingMode)
    .default_value(CheckpointingMode.EXACTLY_ONCE)
)
TIMEOUT = (
    ConfigOptions.key(f"{_PREFIX}.timeout").duration_type().default_value(Duration.of_minutes(10))
)
MIN_PAUSE = ConfigOptions.key(f"{_PREFIX}.min-pause").duration_type().default_value(Duration(0))
MAX_CONCURRENT = (
    ConfigOptions.key(f"{_PREFIX}.max-concurrent-checkpoints").int_type().default_value(1)
)
TOLERABLE_FAILURES = (
    ConfigOptions.key(f"{_PREFIX}.tolerable-failed-checkpoints").int_type().default_value(0)
)
RETENTION = (
    ConfigOptions.key(f"{_PREFIX}.externalized-checkpoint-retention")
    .enum_type(ExternalizedCheckpointRetention)
    .default_value(ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS)
)
UNALIGNED = ConfigOptions.key(f"{_PREFIX}.unaligned.enabled").boolean_type().default_value(False)
FORCE_UNALIGNED = (
    ConfigOptions.key(f"{_PREFIX}.unaligned.forced").boolean_type().default_value(False)
)
ALIGNED_TIMEOUT = (
    ConfigOptions.key(f"{_PREFIX}.aligned-checkpoint-timeout")
    .duration_type()
    .default_value(Duration(0))
)


T = TypeVar("T")

_DISABLED = -1
_SHORTEST_MS = 10
_ANY_NUMBER_OF_FAILURES = 2147483647


class CheckpointConfig(OldCheckpointConfig):
    """Settings of checkpoints, as a view of the program's configuration. Each setter returns the same object.

    On Spark, an unbounded job reads its input in epochs, and each epoch ends with a checkpoint. So the checkpoint
    interval is the time from the start of one epoch to the start of the next (Spark's processing-time trigger). A
    longer interval means larger epochs. Without an interval, an epoch starts as soon as there is input. With the
    triggers `available-now` and `once`, there are no pauses.

    Some settings are only stored, because Flink programs use them: the mode (checkpoints are always exactly once),
    unaligned checkpoints and their timeout (no records are in flight at the end of a micro-batch), and several
    concurrent checkpoints.

    Flink: CheckpointConfig.

    Args:
        configuration: The configuration to read and write. Default: a new one.
    """

    DEFAULT_MODE: ClassVar[CheckpointingMode] = CheckpointingMode.EXACTLY_ONCE

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def is_checkpointing_enabled(self) -> bool:
        """Whether an interval is set."""
        return self.get_checkpoint_interval() > 0

    def disable_checkpointing(self) -> None:
        """Removes the interval. In Flink, only the Java API has this method."""
        self._configuration.remove_config(options.INTERVAL.key)

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """The mode that was set; EXACTLY_ONCE by default. AT_LEAST_ONCE without checkpoints, and in batch jobs."""
        is_batch = (self._configuration.get(RUNTIME_MODE) or "").upper() == "BATCH"
        if is_batch or not self.is_checkpointing_enabled():
            return CheckpointingMode.AT_LEAST_ONCE
        return self._read(options.MODE)

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Stores the mode. It has no effect: checkpoints are always exactly once."""
        _require_enum("set_checkpointing_mode", checkpointing_mode, CheckpointingMode)
        return self._write(options.MODE, checkpointing_mode)

    def get_checkpoint_interval(self) -> int:
        """The milliseconds from the start of one epoch to the start of the next; -1 if not set."""
        interval = self._configuration.get(options.INTERVAL)
        return _DISABLED if interval is None else interval.to_millis()

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Enables checkpoints with this interval in milliseconds.

        Raises:
            ValueError: The interval is less than 10.
        """
        _require_millis(_SHORTEST_MS, "set_checkpoint_interval", checkpoint_interval)
        return self._write(options.INTERVAL, Duration.of_millis(checkpoint_interval))

    def get_checkpoint_timeout(self) -> int:
        """Milliseconds after which a checkpoint fails. Default: 10 minutes, which has no effect unless it is set."""
        return self._read(options.TIMEOUT).to_millis()

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Sets after how many milliseconds an epoch is aborted and its checkpoint counts as failed.

        Raises:
            ValueError: The timeout is less than 10.
        """
        _require_millis(_SHORTEST_MS, "set_checkpoint_timeout", checkpoint_timeout)
        return self._write(options.TIMEOUT, Duration.of_millis(checkpoint_timeout))

    def get_min_pause_between_checkpoints(self) -> int:
        """The minimum pause from the end of a checkpoint to the next one, in milliseconds; 0 unless set."""
        return self._read(options.MIN_PAUSE).to_millis()

    def set_min_pause_between_checkpoints(
        self, min_pause_between_checkpoints: int
    ) -> CheckpointConfig:
        """Sets the minimum pause from the end of a checkpoint to the next one, in milliseconds.

        Raises:
            ValueError: The pause is negative.
        """
        _require_millis(0, "set_min_pause_between_checkpoints", min_pause_between_checkpoints)
        return self._write(options.MIN_PAUSE, Duration.of_millis(min_pause_between_checkpoints))

    def get_max_concurrent_checkpoints(self) -> int:
        """The value that was set; 1 by default. Here checkpoints never overlap."""
        return self._read(options.MAX_CONCURRENT)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Stores the value. It has no effect.

        Raises:
            ValueError: The value is less than 1.
        """
        _require_at_least(1, "set_max_concurrent_checkpoints", max_concurrent_checkpoints)
        return self._write(options.MAX_CONCURRENT, max_concurrent_checkpoints)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether the first failed checkpoint fails the job."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(
        self, fail_on_checkpointing_errors: bool
    ) -> CheckpointConfig:
        """True: the first failed checkpoint fails the job. False: failed checkpoints never fail the job."""
        return self.set_tolerable_checkpoint_failure_number(
            0 if fail_on_checkpointing_errors else _ANY_NUMBER_OF_FAILURES
        )

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """How many checkpoints in a row may fail before the job fails; 0 unless set.

        A checkpoint fails if its storage cannot be written. Exceptions of user functions fail the job, as usual. Flink
        continues with the next checkpoint; here the epoch is retried.
        """
        return self._read(options.TOLERABLE_FAILURES)

    def set_tolerable_checkpoint_failure_number(
        self, tolerable_checkpoint_failure_number: int
    ) -> CheckpointConfig:
        """Sets how many checkpoints in a row may fail before the job fails.

        Raises:
            ValueError: The number is negative.
        """
        call = "set_tolerable_checkpoint_failure_number"
        _require_at_least(0, call, tolerable_checkpoint_failure_number)
        return self._write(options.TOLERABLE_FAILURES, tolerable_checkpoint_failure_number)

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Sets whether checkpoints are deleted when the job ends. If nothing is set, they are kept."""
        call = "set_externalized_checkpoint_retention"
        _require_enum(call, retention_mode, ExternalizedCheckpointRetention)
        return self._write(options.RETENTION, retention_mode)

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Whether a retention other than NO_EXTERNALIZED_CHECKPOINTS is set."""
        return (
            self.get_externalized_checkpoint_retention()
            is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        )

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """The retention of checkpoints; NO_EXTERNALIZED_CHECKPOINTS by default."""
        return self._read(options.RETENTION)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether unaligned checkpoints were enabled, and the mode is EXACTLY_ONCE."""
        is_exact = self.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
        return is_exact and self._read(options.UNALIGNED)

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Stores the value. It has no effect."""
        return self._write(options.UNALIGNED, bool(enabled))

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Stores the value. It has no effect."""
        return self.enable_unaligned_checkpoints(False)

    def set_aligned_checkpoint_timeout(
        self, alignment_timeout: Duration | Time | timedelta | int
    ) -> CheckpointConfig:
        """Stores the timeout; an int is milliseconds. It has no effect."""
        return self._write(
            options.ALIGNED_TIMEOUT, Duration.of_millis(millis_of(alignment_timeout))
        )

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """The value that was set, or 0."""
        return self._read(options.ALIGNED_TIMEOUT)

    def set_alignment_timeout(
        self, alignment_timeout: Duration | Time | timedelta | int
    ) -> CheckpointConfig:
        """The older name of `set_aligned_checkpoint_timeout`."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        """The older name of `get_aligned_checkpoint_timeout`."""
        return self.get_aligned_checkpoint_timeout()

    def set_force_unaligned_checkpoints(
        self, force_unaligned_checkpoints: bool = True
    ) -> CheckpointConfig:
        """Stores the value. It has no effect."""
        return self._write(options.FORCE_UNALIGNED, bool(force_unaligned_checkpoints))

    def is_force_unaligned_checkpoints(self) -> bool:
        """The value that was set, or False."""
        return self._read(options.FORCE_UNALIGNED)

    def _read(self, option: ConfigOption[T]) -> T:
        value = self._configuration.get(option)
        assert value is not None, f"{option.key} has a default"
        return value

    def _write(self, option: ConfigOption[T], value: T) -> CheckpointConfig:
        self._configuration.set(option, value)
        return self


def _require_millis(least: int, call: str, number: object) -> None:
    _require_at_least(least, call, number, " of milliseconds", " ms")


def _require_at_least(least: int, call: str, number: object, of: str = "", unit: str = "") -> None:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(
            f"CheckpointConfig.{call}() takes a whole number{of}, not {short_repr(number)}"
        )
    if number < least:
        raise ValueError(f"CheckpointConfig.{call}({number}): it must be at least {least}{unit}")


def _require_enum(call: str, value: object, enum_class: type) -> None:
    if not isinstance(value, enum_class):
        raise TypeError(
            f"CheckpointConfig.{call}() takes {enum_class.__name__}, not {short_repr(value)}"
        )
