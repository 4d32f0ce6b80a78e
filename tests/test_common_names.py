"""Every public name of PyFlink 2.3's pyflink.common exists here, and takes the same arguments.

The table has modules, their names, and after a colon the members of a name. Parentheses hold the
parameters of what can be called; `?` marks one with a default. Left out are parameters that hand over
a Java object (`j_...`, and `py_class` beside one), constructors that take nothing else, and PyFlink's
constants for converting dates. The conversions of all types call their parameter `obj` here, as their
root class does in PyFlink.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys

import pytest

PACKAGE = (
    "AssignerWithPeriodicWatermarksWrapper",
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "InputDependencyConstraint",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TypeInformation",
    "TypeSerializer",
    "Types",
    "WatermarkStrategy",
)
"""What `pyflink.common` itself exports."""


@pytest.mark.parametrize("name", PACKAGE)
def test_opchain_common_has_all_names_of_pyflink_common(name: str) -> None:
    package = importlib.import_module("opchain.common")
    assert name in package.__all__
    assert name in dir(package)
    assert getattr(package, name) is not None


def test_opchain_common_exports_only_existing_names() -> None:
    package = importlib.import_module("opchain.common")
    for name in package.__all__:
        value = getattr(package, name)
        assert value.__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        package.Nothing  # noqa: B018


def test_importing_opchain_common_imports_no_submodule() -> None:
    program = (
        "import sys; before = set(sys.modules); import opchain.common; "
        "print(sorted(m for m in set(sys.modules) - before if m.startswith('opchain')))"
    )
    assert printed_by(program) == "['opchain', 'opchain.common', 'opchain.reexports']"


def test_runtime_names_of_opchain_common_do_not_import_the_compiler() -> None:
    names = [name for name in PACKAGE if name not in COMPILED]
    program = (
        f"import sys; from opchain.common import {', '.join(names)}; "
        "print([m for m in sys.modules if m.startswith('opchain.compiler')])"
    )
    assert printed_by(program) == "[]"


COMPILED = {
    "ExecutionConfig",
    "InputDependencyConstraint",
    "RestartStrategies",
    "RestartStrategyConfiguration",
}


def printed_by(program: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return run.stdout.strip()
