"""EnvironmentSettings and TableConfig: the settings of a table environment."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from opchain.compiler.dsl.argument_checks import at_call, checked, refused
from opchain.compiler.settings.old_spellings import warn_of_old_spelling
from opchain.runtime.configuration.configuration import Configuration
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.time import Duration

if TYPE_CHECKING:
    from typing_extensions import Self

RUNTIME_MODE = "execution.runtime-mode"
_LOCAL_TIME_ZONE = "table.local-time-zone"
_STATE_TTL = "table.exec.state.ttl"
_PYTHON = "python.executable"
_UTC = ("UTC", "Etc/UTC", "GMT", "Z")


class EnvironmentSettings:
    """Whether tables are bounded, and settings of the jobs. Flink: EnvironmentSettings."""

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration(configuration)

    @staticmethod
    def new_instance() -> EnvironmentSettings.Builder:
        """Returns a builder. The default mode is STREAMING."""
        return EnvironmentSettings.Builder()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Settings of jobs in STREAMING mode."""
        return EnvironmentSettings.new_instance().in_streaming_mode().build()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """Settings of jobs in BATCH mode."""
        return EnvironmentSettings.new_instance().in_batch_mode().build()

    def get_built_in_catalog_name(self) -> str:
        """The only catalog: default_catalog."""
        return "default_catalog"

    def get_built_in_database_name(self) -> str:
        """The only database: default_database."""
        return "default_database"

    def is_streaming_mode(self) -> bool:
        """Whether jobs run in STREAMING mode."""
        return self._configuration.get_string(RUNTIME_MODE, "STREAMING").upper() == "STREAMING"

    def get_configuration(self) -> Configuration:
        """The settings, the runtime mode among them."""
        return self._configuration

    class Builder:
        """Builds settings. Its methods return the builder."""

        def __init__(self) -> None:
            self._configuration = Configuration()

        def with_configuration(self, config: Configuration) -> Self:
            """Adds settings."""
            self._configuration.add_all(
                checked(config, Configuration, "with_configuration", "the configuration")
            )
            return self

        def in_batch_mode(self) -> Self:
            """Jobs run in BATCH mode."""
            self._configuration.set_string(RUNTIME_MODE, "BATCH")
            return self

        def in_streaming_mode(self) -> Self:
            """Jobs run in STREAMING mode."""
            self._configuration.set_string(RUNTIME_MODE, "STREAMING")
            return self

        def with_built_in_catalog_name(self, built_in_catalog_name: str) -> Self:
            """Accepts default_catalog.

            Raises:
                UnsupportedFeatureError: It is another name.
            """
            if built_in_catalog_name != "default_catalog":
                raise refused("with_built_in_catalog_name", "there are no catalogs; omit the call")
            return self

        def with_built_in_database_name(self, built_in_database_name: str) -> Self:
            """Accepts default_database.

            Raises:
                UnsupportedFeatureError: It is another name.
            """
            if built_in_database_name != "default_database":
                raise refused("with_built_in_database_name", "there are no catalogs; omit the call")
            return self

        def use_blink_planner(self) -> Self:
            """Does nothing: PyFlink 1.14 has no other planner."""
            warn_of_old_spelling("use_blink_planner()", "leave the call out")
            return self

        def use_old_planner(self) -> Self:
            """Does nothing: PyFlink 1.14 does not have this planner."""
            warn_of_old_spelling("use_old_planner()", "leave the call out")
            return self

        def build(self) -> EnvironmentSettings:
            """The settings."""
            return EnvironmentSettings(self._configuration)


class TableConfig:
    """The settings of a table environment, which are those of its jobs. Flink: TableConfig."""

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    @staticmethod
    def get_default() -> TableConfig:
        """An empty TableConfig."""
        return TableConfig()

    def get(self, key: str, default_value: str) -> str:
        """The value as text, or the default."""
        return self._configuration.get_string(key, default_value)

    def set(self, key: str, value: str) -> TableConfig:
        """Sets a text.

        Raises:
            UnsupportedFeatureError: It is a time zone other than UTC.
        """
        if key == _LOCAL_TIME_ZONE:
            self.set_local_timezone(value)
        self._configuration.set_string(key, value)
        return self

    def get_configuration(self) -> Configuration:
        """All settings, for reading and writing."""
        return self._configuration

    def add_configuration(self, configuration: Configuration) -> None:
        """Adds settings."""
        self._configuration.add_all(configuration)

    def get_local_timezone(self) -> str:
        """Always UTC."""
        return self.get(_LOCAL_TIME_ZONE, "UTC")

    def set_local_timezone(self, timezone_id: str) -> None:
        """Accepts only UTC.

        Raises:
            UnsupportedFeatureError: The time zone is not UTC.
        """
        if timezone_id not in _UTC:
            raise UnsupportedFeatureError(
                f"{at_call('TableConfig.set_local_timezone')}: the zone {timezone_id!r} is not supported, because "
                "timestamps are in UTC; convert them in a map() of the DataStream API"
            )
        self._configuration.set_string(_LOCAL_TIME_ZONE, timezone_id)

    def get_idle_state_retention(self) -> timedelta:
        """The value that was set. It has no effect; 0 by default."""
        return timedelta(milliseconds=Duration.parse(self.get(_STATE_TTL, "0 ms")).to_millis())

    def set_idle_state_retention(self, duration: timedelta) -> None:
        """Stores the value. It has no effect, because queries have no state."""
        self.set(_STATE_TTL, f"{round(duration.total_seconds() * 1000)} ms")

    def get_python_executable(self) -> str | None:
        """The Python interpreter of the executors, or None."""
        return self.get(_PYTHON, "") or None

    def set_python_executable(self, python_exec: str) -> None:
        """Sets the Python interpreter of the executors."""
        self.set(_PYTHON, python_exec)
