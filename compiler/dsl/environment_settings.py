"""The settings of an environment: one Configuration, and the methods that write and read it."""

# ruff: noqa: PLC0415 - settings that a program does not touch are not loaded.

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from opchain.compiler.dsl.argument_checks import at_call, checked
from opchain.compiler.dsl.drawn_program import DrawnProgram
from opchain.compiler.graph.transformation import MAX_PARALLELISM_LIMIT, UNSET
from opchain.compiler.settings import pipeline_options
from opchain.compiler.settings.old_spellings import OldEnvironmentCalls, warn_of_old_spelling
from opchain.runtime.configuration.configuration import Configuration
from opchain.runtime.errors import GraphError
from opchain.runtime.time import Duration

if TYPE_CHECKING:
    from typing_extensions import Self

    from opchain.compiler.settings.checkpoint_config import CheckpointConfig, CheckpointingMode
    from opchain.compiler.settings.execution_config import ExecutionConfig, RuntimeExecutionMode
    from opchain.compiler.settings.slot_sharing_group import SlotSharingGroup
    from opchain.compiler.settings.state_backend import StateBackend

_FLUSH_WHEN_FULL = -1


class EnvironmentSettings(DrawnProgram, OldEnvironmentCalls):
    """What holds for a whole program. Setters return the environment.

    All of it lives in one Configuration, so that a setter and its configuration key are two names
    of one thing, and what is set last counts.

    Flink: the first half of `StreamExecutionEnvironment`.
    """

    _default_local_parallelism: ClassVar[int] = 1

    def __init__(self, configuration: Configuration | None = None) -> None:
        super().__init__()
        self._configuration = Configuration()
        self._slot_sharing_groups: dict[str, SlotSharingGroup] = {}
        self._local_parallelism = EnvironmentSettings._default_local_parallelism
        if configuration is not None:
            self.configure(configuration)

    def get_configuration(self) -> Configuration:
        """The settings as configuration keys; not a copy."""
        return self._configuration

    def get_config(self) -> ExecutionConfig:
        """The settings as PyFlink's ExecutionConfig; a view, not a copy."""
        from opchain.compiler.settings.execution_config import ExecutionConfig

        return ExecutionConfig(self._configuration)

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The settings of checkpoints; a view, not a copy."""
        from opchain.compiler.settings.checkpoint_config import CheckpointConfig

        return CheckpointConfig(self._configuration)

    def configure(self, configuration: Configuration) -> None:
        """Takes over all keys of a configuration; keys it lacks keep their values.

        Keys that are known are checked here; unknown ones are kept for others to read.

        Raises:
            ValueError: A known key has a value that does not fit; nothing is taken over then.
        """
        checked(configuration, Configuration, "configure", "the configuration")
        # Imported late: pydantic takes its time, and a program without configuration needs none.
        from opchain.compiler.settings.settings_reader import read_settings

        read_settings(configuration)
        self._configuration.add_all(configuration)

    def set_parallelism(self, parallelism: int) -> Self:
        """Sets the parallelism of operators made from now on that have none of their own."""
        if checked(parallelism, int, "set_parallelism", "the parallelism") < 1:
            raise ValueError(
                f"{at_call('set_parallelism')}: the parallelism is {parallelism}; "
                "it must be at least 1"
            )
        self._configuration.set(pipeline_options.PARALLELISM, parallelism)
        return self

    def get_parallelism(self) -> int:
        """The parallelism of operators that have none of their own; 1 unless set.

        PyFlink takes the number of processors of the machine. Here the same program has the same
        plan on every machine.
        """
        parallelism = self._configuration.get(pipeline_options.PARALLELISM, self._local_parallelism)
        # Flink's word for "not set" is -1, and ExecutionConfig.set_parallelism takes it.
        return self._local_parallelism if parallelism < 1 else parallelism

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Sets the number of key groups of operators that have none of their own, 1 to 32768."""
        value = checked(max_parallelism, int, "set_max_parallelism", "the max parallelism")
        if not 1 <= value <= MAX_PARALLELISM_LIMIT:
            raise ValueError(
                f"{at_call('set_max_parallelism')}: the max parallelism is {value}; "
                f"it must be between 1 and {MAX_PARALLELISM_LIMIT}"
            )
        self._configuration.set(pipeline_options.MAX_PARALLELISM, value)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups, or -1 where each operator gets one by its parallelism."""
        return self._configuration.get(pipeline_options.MAX_PARALLELISM, UNSET)

    def get_default_local_parallelism(self) -> int:
        """The parallelism of environments where none is set: 1, unless changed."""
        return EnvironmentSettings._default_local_parallelism

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Sets the parallelism of environments made from now on where none is set."""
        call = "set_default_local_parallelism"
        if checked(parallelism, int, call, "the parallelism") < 1:
            raise ValueError(
                f"{at_call(call)}: the parallelism is {parallelism}; it must be at least 1"
            )
        EnvironmentSettings._default_local_parallelism = parallelism

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Chooses STREAMING (the default), BATCH, or AUTOMATIC: BATCH if all sources are bounded."""
        from opchain.compiler.settings.execution_config import RuntimeExecutionMode

        checked(execution_mode, RuntimeExecutionMode, "set_runtime_mode", "the mode")
        self._configuration.set(pipeline_options.RUNTIME_MODE, execution_mode.name)
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Sets how long a record may wait in a buffer: 0 flushes each, -1 only full buffers."""
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
        """How long a record may wait in a buffer, in milliseconds; -1 for only full buffers."""
        if not self._configuration.get(pipeline_options.BUFFER_TIMEOUT_ENABLED):
            return _FLUSH_WHEN_FULL
        timeout = self._configuration.get(pipeline_options.BUFFER_TIMEOUT)
        return _FLUSH_WHEN_FULL if timeout is None else timeout.to_millis()

    def disable_operator_chaining(self) -> Self:
        """Gives every operator a vertex of its own."""
        self._configuration.set(pipeline_options.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators may share a vertex."""
        return bool(self._configuration.get(pipeline_options.OPERATOR_CHAINING))

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Whether operators may share a vertex though their max parallelisms differ."""
        return bool(self._configuration.get(pipeline_options.CHAIN_DIFFERENT_MAX_PARALLELISM))

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Registers a slot sharing group with its resources; operators join it by its name.

        A group that names no resources is no more than its name, and is not kept.

        Raises:
            GraphError: A group of that name has other resources.
        """
        from opchain.compiler.settings.slot_sharing_group import SlotSharingGroup

        call = "register_slot_sharing_group"
        checked(slot_sharing_group, SlotSharingGroup, call, "the group")
        if slot_sharing_group.get_cpu_cores() is None:
            return self
        name = slot_sharing_group.get_name()
        known = self._slot_sharing_groups.setdefault(name, slot_sharing_group)
        if known != slot_sharing_group:
            raise GraphError(
                f"{at_call(call)}: slot sharing group '{name}' is already registered with other "
                f"resources: {known!r}, not {slot_sharing_group!r}; use one of the two"
            )
        return self

    def slot_sharing_group_name(self, group: str | SlotSharingGroup) -> str:
        """The name of a group as the operators' setters take it; registers one with resources."""
        if isinstance(group, str):
            if not group:
                raise ValueError(f"{at_call('slot_sharing_group')}: the group's name is empty")
            return group
        self.register_slot_sharing_group(group)
        return group.get_name()

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> Self:
        """Draws a checkpoint every `interval` milliseconds."""
        config = self.get_checkpoint_config()
        config.set_checkpoint_interval(interval)
        if mode is not None:
            config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """Milliseconds between checkpoints; -1 where there are none."""
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Exactly once, or at least once."""
        return self.get_checkpointing_consistency_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Exactly once, or at least once."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether checkpoints may overtake buffers. They never do here: all are aligned."""
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether unaligned checkpoints are forced; see `is_unaligned_checkpoints_enabled`."""
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """Chooses where keyed state is kept: in memory, unless set, or on the executors' disks.

        PyFlink 2 has the configuration key `state.backend.type` alone; this is as in PyFlink 1.
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
        """The backend that the configuration names; as in PyFlink 1."""
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
        """Asks for a changelog of keyed state; see `is_changelog_state_backend_enabled`."""
        checked(enabled, bool, "enable_changelog_state_backend", "the switch")
        self._configuration.set(pipeline_options.CHANGELOG_ENABLED, enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """What was asked for, or None. Checkpoints here hold changes anyway, so it does nothing."""
        return self._configuration.get(pipeline_options.CHANGELOG_ENABLED)

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """Sets where savepoints go that name no directory."""
        checked(directory, str, "set_default_savepoint_directory", "the directory")
        self._configuration.set(pipeline_options.SAVEPOINT_DIRECTORY, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Where savepoints go that name no directory; None where that is not set."""
        return self._configuration.get(pipeline_options.SAVEPOINT_DIRECTORY)
