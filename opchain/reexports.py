"""Resolves names that a PyFlink module has, but the opchain module of the same name does not define.

A module ends with `__getattr__ = reexports(__name__)`. A name that PyFlink imports from another module is imported from
the same module of opchain. A name of PyFlink 1.16 to 1.20 works and emits a DeprecationWarning. An unsupported name can
be imported, but using it raises an error.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from abc import ABCMeta
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

OLD_NAMES = {
    "common.ExecutionMode": (
        "compiler.settings.old_spellings.ExecutionMode",
        "the execution mode is RuntimeExecutionMode in PyFlink 2",
    ),
    "common.execution_config.ExecutionMode": (
        "compiler.settings.old_spellings.ExecutionMode",
        "the execution mode is RuntimeExecutionMode in PyFlink 2",
    ),
    "common.execution_config.InputDependencyConstraint": (
        "common.input_dependency_constraint.InputDependencyConstraint",
        "import it from common.input_dependency_constraint",
    ),
    "common.execution_config.RestartStrategies": (
        "common.restart_strategy.RestartStrategies",
        "PyFlink 2 sets 'restart-strategy.type' in the Configuration",
    ),
    "common.execution_config.RestartStrategyConfiguration": (
        "common.restart_strategy.RestartStrategyConfiguration",
        "PyFlink 2 sets 'restart-strategy.type' in the Configuration",
    ),
    "datastream.ExternalizedCheckpointCleanup": (
        "datastream.externalized_checkpoint_retention.ExternalizedCheckpointRetention",
        "PyFlink 2 has ExternalizedCheckpointRetention",
    ),
    "datastream.checkpoint_config.ExternalizedCheckpointCleanup": (
        "datastream.externalized_checkpoint_retention.ExternalizedCheckpointRetention",
        "PyFlink 2 has ExternalizedCheckpointRetention",
    ),
    "datastream.checkpoint_config.CheckpointStorage": (
        "datastream.checkpoint_storage.CheckpointStorage",
        "import it from datastream.checkpoint_storage",
    ),
    "datastream.stream_execution_environment.RestartStrategies": (
        "common.restart_strategy.RestartStrategies",
        "PyFlink 2 sets 'restart-strategy.type' in the Configuration",
    ),
    "datastream.stream_execution_environment.RestartStrategyConfiguration": (
        "common.restart_strategy.RestartStrategyConfiguration",
        "PyFlink 2 sets 'restart-strategy.type' in the Configuration",
    ),
    "datastream.stream_execution_environment.StateBackend": (
        "datastream.state_backend.StateBackend",
        "import it from datastream.state_backend",
    ),
    **{
        f"{module}.TimeCharacteristic": (
            "compiler.settings.old_spellings.TimeCharacteristic",
            "PyFlink 2 works in event time where a WatermarkStrategy is assigned",
        )
        for module in (
            *("datastream", "datastream.stream_execution_environment"),
            "datastream.time_characteristic",
        )
    },
    "dataset.ExecutionEnvironment": (
        "dataset.ExecutionEnvironment",
        "PyFlink 2 has StreamExecutionEnvironment with set_runtime_mode(RuntimeExecutionMode.BATCH)",
    ),
    "common.execution_mode.ExecutionMode": (
        "compiler.settings.old_spellings.ExecutionMode",
        "the execution mode is RuntimeExecutionMode in PyFlink 2",
    ),
    **{
        f"{module}.{name}": (f"compiler.settings.old_spellings.{name}", instead)
        for module in ("datastream", "datastream.state_backend")
        for name, instead in (
            ("MemoryStateBackend", "PyFlink 2 has HashMapStateBackend"),
            (
                "FsStateBackend",
                "PyFlink 2 has HashMapStateBackend and 'execution.checkpointing.dir'",
            ),
            ("RocksDBStateBackend", "PyFlink 2 has EmbeddedRocksDBStateBackend"),
        )
    },
    "common.serialization.SimpleStringEncoder": (
        "runtime.types.serialization.SimpleStringEncoder",
        "call Encoder.simple_string_encoder()",
    ),
    **{
        f"common.serialization.{name}": (
            f"datastream.formats.{folder}.{name}",
            f"import it from datastream.formats.{folder}",
        )
        for folder, names in (
            ("avro", ("AvroRowDeserializationSchema", "AvroRowSerializationSchema")),
            ("csv", ("CsvRowDeserializationSchema", "CsvRowSerializationSchema")),
            ("json", ("JsonRowDeserializationSchema", "JsonRowSerializationSchema")),
        )
        for name in names
    },
    **{
        f"{module}.{name}": (f"{module}.{name}", "PyFlink 2 describes tables with CREATE TABLE")
        for module, names in (
            ("table", "CsvTableSource CsvTableSink TableSource TableSink BatchTableEnvironment"),
            ("table", "WriteMode"),
            ("table.sinks", "CsvTableSink TableSink WriteMode"),
            ("table.sources", "CsvTableSource TableSource"),
            ("table.descriptors", "Avro Csv Elasticsearch FileSystem Json Kafka OldCsv"),
            ("table.descriptors", "CustomConnectorDescriptor CustomFormatDescriptor"),
        )
        for name in names.split()
    },
    **{
        f"datastream.connectors.pulsar.{name}": (
            f"datastream.connectors.pulsar.{name}",
            "PyFlink 2 takes a schema of common.serialization",
        )
        for name in (
            *("PulsarDeserializationSchema", "PulsarSerializationSchema", "SubscriptionType"),
        )
    },
}
"""For each name of PyFlink 1: its module and name here, and the replacement in PyFlink 2."""

_REFUSALS = {
    "dataset": "Flink 2 has no DataSet API: use StreamExecutionEnvironment, and call "
    "set_runtime_mode(RuntimeExecutionMode.BATCH)",
    "datastream.connectors.elasticsearch": "use ElasticsearchSink of opchain.datastream.connectors, which sends to "
    "the _bulk API of Elasticsearch and OpenSearch",
    "table": "opchain has only a part of the Table API: StreamTableEnvironment with CREATE TABLE, scalar SELECT, "
    "expressions, scalar udf and INSERT INTO; compute with the DataStream API, or with Spark SQL",
    "datastream.connectors": "the connector runs in Flink's JVM; to write, subclass OutboxSink or CommitSink of "
    "opchain.datastream.connectors and call a client for Python; to read, write a Source",
    "datastream.formats": "the format runs in Flink's JVM; use Parquet, Avro, CSV or JSON",
    "": "it is internal to PyFlink and its JVM, and no JVM of Flink runs here",
}
"""Why a PyFlink name is not supported, by module prefix. The first matching prefix wins."""


@cache
def names_of(module: str) -> dict[str, str]:
    """The names of a PyFlink module, and the module that defines each of them."""
    from opchain.pyflink_names import NAMES  # noqa: PLC0415 - needed for a name that is not at hand

    found: dict[str, str] = {}
    current = ""
    for line in NAMES.split("\n"):
        if line.startswith("["):
            current = line.strip("[]")
        elif current == module and line:
            owner, _, names = line.partition(": ")
            found.update(dict.fromkeys(names.split(), module if owner == "." else owner))
    return found


class _Refused(ABCMeta):
    """The class of placeholders for unsupported names, which can be imported but not used.

    A class may have an abstract class and a placeholder as bases; then its metaclass is this one.
    """

    _reason: str

    def __new__(
        cls, name: str, bases: tuple[type, ...], contents: dict[str, Any], **_keywords: Any
    ) -> _Refused:
        for base in bases:
            if isinstance(base, _Refused):
                _Refused._refuse(base)
        return super().__new__(cls, name, bases, contents)

    def __call__(cls, *_arguments: Any, **_keywords: Any) -> NoReturn:
        cls._refuse()

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):  # Python looks up its special methods here
            raise AttributeError(name)
        cls._refuse(f".{name}")

    def _refuse(cls, attribute: str = "") -> NoReturn:
        from opchain.runtime.errors import UnsupportedFeatureError  # noqa: PLC0415 - mostly unused

        raise UnsupportedFeatureError(
            f"{cls.__module__}.{cls.__name__}{attribute} is not supported: {cls._reason}"
        )


@cache
def refused_name(module: str, name: str) -> type:
    """A placeholder for an unsupported name. Using it raises an error."""
    reason = next(reason for place, reason in _REFUSALS.items() if module.startswith(place))
    contents = {"__module__": f"opchain.{module}", "_reason": reason}
    return _Refused(name, (), contents)


def is_refused(value: object) -> bool:
    """Whether the value is a placeholder for an unsupported name."""
    return isinstance(value, _Refused)


def reexports(module_name: str, **own: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module that PyFlink also has.

    `from module import *` of a module without `__all__` imports the names that PyFlink 2 defines in this module.

    Args:
        module_name: The module.
        own: Names that only opchain has in this package, by the module of the package that defines them.
    """
    module = module_name.removeprefix("opchain.")
    if "__all__" not in vars(sys.modules[module_name]):
        names = [name for name, owner in names_of(module).items() if owner == module]
        if names:
            vars(sys.modules[module_name])["__all__"] = names
    owners = {
        name: f"{module_name}.{owner}" for owner, names in own.items() for name in names.split()
    }

    def getattr_of_module(name: str) -> Any:
        owner = owners.get(name)
        value = (
            _found(module, name) if owner is None else getattr(importlib.import_module(owner), name)
        )
        if f"{module}.{name}" not in OLD_NAMES:  # they warn at every import
            vars(sys.modules[module_name]).setdefault(name, value)
        return value

    return getattr_of_module


def _found(module: str, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'opchain.{module}' has no attribute {name!r}")
    owner = names_of(module).get(name)
    if owner == "typing":
        return TypeVar(name)
    if owner == module:
        return refused_name(module, name)
    if owner is not None:
        return getattr(importlib.import_module(f"opchain.{owner}"), name)
    old = OLD_NAMES.get(f"{module}.{name}")
    if old is None:
        raise AttributeError(f"module 'opchain.{module}' has no attribute {name!r}")
    target, instead = old
    place, _, there = target.rpartition(".")
    warnings.warn(
        f"opchain.{module}.{name} is of PyFlink 1: {instead}", DeprecationWarning, stacklevel=3
    )
    if place == module:
        return refused_name(module, name)
    return getattr(importlib.import_module(f"opchain.{place}"), there)
