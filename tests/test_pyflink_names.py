"""Every name of PyFlink 2.3 is importable from the same module, with the same parameters.

What PyFlink has is recorded by record_pyflink_names.py.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opchain.pyflink_names import NAMES
from opchain.reexports import OLD_NAMES, is_refused, names_of
from opchain.runtime.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = [line.strip("[]") for line in NAMES.split("\n") if line.startswith("[")]
SIGNATURES = Path(__file__).with_name("pyflink_signatures.txt").read_text().splitlines()

REFUSED = {
    "datastream.connectors.base": "StreamTransformer SupportsPreprocessing",
    "datastream.formats.orc": "OrcBulkWriters",
    "datastream.functions": (
        "FunctionWrapper InternalIterableAllWindowFunction InternalIterableProcessAllWindowFunction "
        "InternalIterableProcessWindowFunction InternalIterableWindowFunction "
        "InternalProcessAllWindowContext InternalProcessWindowContext "
        "InternalSingleValueAllWindowFunction InternalSingleValueProcessAllWindowFunction "
        "InternalSingleValueProcessWindowFunction InternalSingleValueWindowFunction "
        "InternalWindowFunction JavaFunctionWrapper ReduceFunctionWrapper"
    ),
    "datastream.utils": (
        "convert_to_python_obj create_hadoop_configuration create_java_properties "
        "pickled_bytes_to_python_obj"
    ),
    "datastream.window": "Min WindowOperationDescriptor long_to_int_with_bit_mixing mod_inverse",
    "java_gateway": "PythonFunctionFactory Watchdog import_flink_view",
    "util.exceptions": (
        "capture_java_exception convert_py4j_exception install_exception_handler install_py4j_hooks"
    ),
}
"""What a module refuses of its own; the helpers of PyFlink's calls into Java, and what belongs to its JVM."""

REFUSED_MODULES = (
    *("table.", "serializers", "util.java_utils"),
    *(
        f"datastream.connectors.{name}"
        for name in (
            *("cassandra", "dynamic_kafka", "elasticsearch", "hybrid_source", "kafka", "kinesis"),
            *("pulsar", "rabbitmq"),
        )
    ),
)
"""Modules that may refuse any name of theirs: the Table API, connectors of the JVM, and serializers of its wire."""


def may_refuse(module: str, name: str) -> bool:
    return module.startswith(REFUSED_MODULES) or name in REFUSED.get(module, "").split()


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_each_pyflink_module_can_be_imported(module: str) -> None:
    found = importlib.import_module(f"opchain.{module}")
    assert [name for name in names_of(module) if not hasattr(found, name)] == []


@pytest.mark.parametrize("module", MODULES)
def test_only_listed_names_of_pyflink_are_refused(module: str) -> None:
    found = importlib.import_module(f"opchain.{module}")
    refused = {
        n
        for n, owner in names_of(module).items()
        if owner == module and is_refused(getattr(found, n))
    }
    assert {name for name in refused if not may_refuse(module, name)} == set()
    assert set(REFUSED.get(module, "").split()) <= refused, "a name that works now is listed"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("datastream.formats.orc", "OrcBulkWriters"),
        ("datastream.connectors.pulsar", "PulsarSource"),
        ("table.catalog", "Catalog"),
    ],
)
def test_a_star_import_includes_refused_names(module: str, name: str) -> None:
    found: dict[str, object] = {}
    exec(f"from opchain.{module} import *", found)  # noqa: S102
    assert is_refused(found[name])


def test_a_refused_name_raises_an_error_when_it_is_used() -> None:
    from opchain.datastream.connectors.base import (  # noqa: PLC0415
        Sink,
        SupportsPreprocessing,
    )
    from opchain.datastream.connectors.pulsar import PulsarSource, StopCursor  # noqa: PLC0415
    from opchain.table.expressions import lag  # noqa: PLC0415
    from opchain.table.udf import AggregateFunction, udaf  # noqa: PLC0415

    text = r"opchain\.table\.expressions\.lag is not supported"
    with pytest.raises(UnsupportedFeatureError, match=text):
        lag("a")
    with pytest.raises(UnsupportedFeatureError, match=r"udf\.udaf is not supported: .* Table API"):
        udaf(result_type=None)
    with pytest.raises(UnsupportedFeatureError, match=r"pulsar\.PulsarSource\.builder"):
        PulsarSource.builder()
    with pytest.raises(
        UnsupportedFeatureError, match=r"StopCursor is not supported: the connector"
    ):
        StopCursor()
    with pytest.raises(UnsupportedFeatureError, match=r"udf\.AggregateFunction is not supported"):

        class Doubled(AggregateFunction):  # type: ignore[misc]
            pass

    with pytest.raises(UnsupportedFeatureError, match="SupportsPreprocessing is not supported"):

        class Sent(Sink[Any], SupportsPreprocessing):  # type: ignore[misc]
            pass


def test_the_dataset_api_of_pyflink_1_is_refused_with_its_replacement() -> None:
    with pytest.warns(DeprecationWarning, match="PyFlink 2 has StreamExecutionEnvironment"):
        from opchain.dataset import ExecutionEnvironment  # noqa: PLC0415
    with pytest.raises(
        UnsupportedFeatureError, match=r"set_runtime_mode\(RuntimeExecutionMode\.BATCH\)"
    ):
        ExecutionEnvironment.get_execution_environment()


def entries() -> Iterator[tuple[str, str]]:
    """(module, entry) of what PyFlink's modules define by themselves, the Table API aside."""
    module = ""
    for line in SIGNATURES:
        if line.startswith("["):
            module = line.strip("[]")
        elif not module.startswith("table"):
            yield module, line


EXCUSED = {
    "common.restart_strategy": (
        *("RestartStrategies.FailureRateRestartStrategyConfiguration.__init__",),
        "RestartStrategies.FixedDelayRestartStrategyConfiguration.__init__",
    ),
    "datastream.connectors.base": ("Sink.__init__", "Source.__init__"),
    "datastream.connectors.file_system": (
        "FileSink.get_transformer",
        "StreamingFileSink.BaseBuilder.with_rolling_policy",
    ),
    "datastream.data_stream": (
        *("KeyedStream.AccumulateType", "KeyedStream.AccumulateType.MAX"),
        *("KeyedStream.AccumulateType.MAX_BY", "KeyedStream.AccumulateType.MIN"),
        *("KeyedStream.AccumulateType.MIN_BY", "KeyedStream.AccumulateType.SUM"),
    ),
    "datastream.functions": ("SinkFunction.__init__", "SourceFunction.__init__"),
    "datastream.output_tag": ("OutputTag.get_java_output_tag",),
    "datastream.slot_sharing_group": (
        *("MemorySize.get_java_memory_size", "SlotSharingGroup.get_java_slot_sharing_group"),
    ),
    "datastream.window": (
        "ContinuousEventTimeTrigger.register_next_fire_timestamp",
        "ContinuousProcessingTimeTrigger.register_next_fire_timestamp",
    ),
}
"""Members that hold Java objects or are PyFlink's own steps; programs use the factories and methods beside them."""

JAVA = ("j_", "_j_")
"""How the parameters and members begin that hold Java objects."""


def problem_of(module: str, entry: str) -> str | None:
    """What is wrong with the counterpart of one recorded name."""
    name, _, inside = entry.partition("(")
    if name in EXCUSED.get(module, ()):
        return None
    owner: Any = importlib.import_module(f"opchain.{module}")
    first = name.split(".")[0]
    if is_refused(getattr(owner, first, None)):
        return None
    for part in name.split("."):
        if not hasattr(owner, part):
            return f"{module}: {name} is missing"
        owner = getattr(owner, part)
    return parameters_problem(owner, module, entry) if inside else None


def parameters_problem(owner: Any, module: str, entry: str) -> str | None:
    name, _, inside = entry.partition("(")
    theirs = [p for p in inside.rstrip(")").split(", ") if p and not p.startswith(JAVA)]
    if name.endswith("__init__") and "(self, j_" in entry.replace("_j_", "j_"):
        return None  # PyFlink wraps a Java object; programs call the factory methods
    ours = list(inspect.signature(owner).parameters.values())
    names = [_described(p) for p in ours]
    for at, parameter in enumerate(theirs):
        if at >= len(names) or parameter not in (names[at], f"{names[at].rstrip('?')}"):
            return f"{module}: {entry} is here ({', '.join(names)})"
    needed = [n for n in names[len(theirs) :] if not n.endswith("?") and not n.startswith("*")]
    return f"{module}: {entry} needs {needed} here" if needed else None


def _described(parameter: inspect.Parameter) -> str:
    marks = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
    default = "" if parameter.default is parameter.empty else "?"
    return marks.get(parameter.kind, "") + parameter.name + default


@pytest.mark.parametrize("module", sorted({module for module, _ in entries()}))
def test_functions_have_pyflinks_signatures(module: str) -> None:
    problems = [problem_of(place, entry) for place, entry in entries() if place == module]
    assert [problem for problem in problems if problem] == []


@pytest.mark.parametrize("old", OLD_NAMES)
def test_a_name_of_pyflink_1_works_and_warns(old: str) -> None:
    module, _, name = old.rpartition(".")
    found = importlib.import_module(f"opchain.{module}")
    with pytest.warns(DeprecationWarning, match=f"{name} is of PyFlink 1: "):
        value = getattr(found, name)
    assert inspect.isclass(value)


def test_a_name_that_pyflink_never_had_is_unknown() -> None:
    for module in ("datastream", "datastream.window", "common.serialization", "table.udf"):
        found = importlib.import_module(f"opchain.{module}")
        with pytest.raises(AttributeError, match="has no attribute 'FlinkSQL'"):
            found.FlinkSQL  # noqa: B018


@pytest.mark.parametrize("module", ["datastream", "datastream.state_backend"])
def test_the_warning_about_an_old_name_names_the_line_of_the_import(module: str) -> None:
    with pytest.warns(DeprecationWarning, match="FsStateBackend is of PyFlink 1") as found:
        exec(compile(f"from opchain.{module} import FsStateBackend", "job.py", "exec"), {})  # noqa: S102
    assert {Path(warning.filename).name for warning in found} == {"job.py"}
