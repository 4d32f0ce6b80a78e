"""What the files of a FileSink are called, and when the next one begins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OutputFileConfig:
    """The beginning and the end of each file's name. Flink: OutputFileConfig."""

    part_prefix: str
    part_suffix: str

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Starts with `part` and no ending."""
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """What names begin with."""
        return self.part_prefix

    def get_part_suffix(self) -> str:
        """What names end with."""
        return self.part_suffix

    def name(self, writer_id: str, number: int) -> str:
        """The name of a file, as in Flink: `part-<random id of the writer>-<number>.txt`."""
        return f"{self.part_prefix}-{writer_id}-{number}{self.part_suffix}"

    class OutputFileConfigBuilder:
        """A file naming in the making."""

        def __init__(self) -> None:
            self._prefix = "part"
            self._suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Sets the beginning of the names."""
            self._prefix = _checked(prefix, "with_part_prefix")
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Sets the end of the names, such as `.txt`."""
            self._suffix = _checked(suffix, "with_part_suffix")
            return self

        def build(self) -> OutputFileConfig:
            """The naming."""
            return OutputFileConfig(self._prefix, self._suffix)


@dataclass(frozen=True)
class RollingPolicy:
    """When a file is complete and the next one begins. Flink: RollingPolicy.

    Every file is completed at a checkpoint and at the end of the input, whatever the policy: there is
    no file that continues behind a checkpoint, as Flink's default policy has it.
    """

    part_size: int | None = None

    @staticmethod
    def default_rolling_policy(
        part_size: int = 128 * 1024 * 1024,
        rollover_interval: int = 60 * 1000,
        inactivity_interval: int = 60 * 1000,
    ) -> DefaultRollingPolicy:
        """Begins a new file when one has reached `part_size` bytes.

        The two intervals (milliseconds) are taken as in PyFlink and decide nothing: where a file
        ends must not depend on how fast a machine is.
        """
        for what, value in (
            ("part_size", part_size),
            ("rollover_interval", rollover_interval),
            ("inactivity_interval", inactivity_interval),
        ):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"a rolling policy's {what} is {value!r}; it must be at least 1")
        return DefaultRollingPolicy(part_size)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Begins a new file at each checkpoint only."""
        return OnCheckpointRollingPolicy()

    def is_full(self, size: int) -> bool:
        """Whether a file of so many bytes takes no more records."""
        return self.part_size is not None and size >= self.part_size


class DefaultRollingPolicy(RollingPolicy):
    """Made by `RollingPolicy.default_rolling_policy`."""


class OnCheckpointRollingPolicy(RollingPolicy):
    """Made by `RollingPolicy.on_checkpoint_rolling_policy`."""


def _checked(text: str, call: str) -> str:
    if not isinstance(text, str) or "/" in text:
        raise ValueError(f"{call} got {text!r}; a part of a file name must be a str without '/'")
    return text
