"""`import opchain` costs nothing, executors never load the compiler, and editors see every name."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import opchain
import opchain.datastream

ROOT = Path(__file__).parents[1]

PYFLINKS = [
    "AggregateFunction",
    "AsyncDataStream",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BroadcastConnectedStream",
    "BroadcastProcessFunction",
    "BroadcastStream",
    "CheckpointConfig",
    "CheckpointStorage",
    "CheckpointingMode",
    "CoFlatMapFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "ConnectedStreams",
    "CountWindow",
    "CustomCheckpointStorage",
    "CustomStateBackend",
    "DataStream",
    "DataStreamSink",
    "EmbeddedRocksDBStateBackend",
    "ExternalizedCheckpointRetention",
    "FileSystemCheckpointStorage",
    "FilterFunction",
    "FlatMapFunction",
    "GlobalWindow",
    "HashMapStateBackend",
    "JobManagerCheckpointStorage",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "MapFunction",
    "MemorySize",
    "MergingWindowAssigner",
    "OutputTag",
    "Partitioner",
    "PredefinedOptions",
    "ProcessFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SinkFunction",
    "SlotSharingGroup",
    "SourceFunction",
    "StateBackend",
    "StreamExecutionEnvironment",
    "TimeDomain",
    "TimeWindow",
    "TimerService",
    "Trigger",
    "TriggerResult",
    "Window",
    "WindowAssigner",
    "WindowFunction",
    "WindowedStream",
]

EXECUTOR_MODULES = ["functions", "state", "window", "output_tag", "time_domain", "timerservice"]
SETTINGS_MODULES = [
    "checkpoint_config",
    "checkpoint_storage",
    "checkpointing_mode",
    "execution_mode",
    "externalized_checkpoint_retention",
    "slot_sharing_group",
    "state_backend",
]


def loaded_by(statement: str) -> set[str]:
    """The modules outside the standard library that a statement loads in a fresh interpreter."""
    program = (
        "import sys; before = set(sys.modules)\n"
        f"{statement}\n"
        "print(*sorted(m for m in set(sys.modules) - before"
        " if m.split('.')[0] not in sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


def test_importing_opchain_datastream_imports_no_submodule() -> None:
    loaded = loaded_by("import opchain.datastream")
    assert loaded == {"opchain", "opchain.datastream", "opchain.reexports"}


@pytest.mark.parametrize("module", EXECUTOR_MODULES)
def test_modules_for_executors_import_only_runtime_and_standard_library(module: str) -> None:
    loaded = loaded_by(f"import opchain.datastream.{module}")
    assert f"opchain.datastream.{module}" in loaded
    others = {m for m in loaded if not m.startswith(("opchain.runtime", "opchain.datastream"))}
    assert others == {"opchain", "opchain.reexports"}


@pytest.mark.parametrize("module", SETTINGS_MODULES)
def test_settings_modules_need_only_the_standard_library(module: str) -> None:
    loaded = loaded_by(f"import opchain.datastream.{module}")
    assert {m.split(".")[0] for m in loaded} == {"opchain"}


@pytest.mark.parametrize("package", ["opchain", "opchain.datastream"])
def test_type_checkers_and_programs_see_the_same_names(package: str) -> None:
    module = importlib.import_module(package)
    source = ast.parse(Path(str(module.__file__)).read_text())
    (block,) = [node for node in source.body if isinstance(node, ast.If)]
    for_editors = {
        (alias.name, node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for name, where in for_editors:
        assert getattr(module, name) is getattr(importlib.import_module(str(where)), name)
    assert {name for name, _ in for_editors} == set(module.__all__) - {"__version__"}
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("package", [opchain, opchain.datastream])
def test_every_exported_name_can_be_imported(package: object) -> None:
    names: list[str] = package.__all__  # type: ignore[attr-defined]
    assert len(names) == len(set(names))
    for name in names:
        assert getattr(package, name) is not None


def test_opchain_datastream_has_all_names_of_pyflink_datastream() -> None:
    assert set(PYFLINKS) <= set(opchain.datastream.__all__)


@pytest.mark.parametrize("package", [opchain, opchain.datastream])
def test_an_unknown_name_is_an_attribute_error(package: object) -> None:
    with pytest.raises(AttributeError, match=r"module 'opchain.*' has no attribute 'FlinkSQL'"):
        package.FlinkSQL  # type: ignore[attr-defined] # noqa: B018


def test_the_version_is_that_of_the_package() -> None:
    declared = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared is not None
    assert opchain.__version__ == declared[1]
