"""Tools for tests of programs: assertions on plans, and harnesses for single operators.

Test without Spark which operators share a task, and whether a plan has changed:

>>> from opchain import StreamExecutionEnvironment
>>> from opchain.testing import assert_chained
>>> env = StreamExecutionEnvironment.get_execution_environment()
>>> numbers = env.from_sequence(1, 9).map(lambda n: n + 1).name("add")
>>> _ = numbers.filter(lambda n: n % 2).name("odd").print()
>>> assert_chained(env, "add", "odd")

Test one operator without a job; the test sets the time (see OneInputOperatorHarness and similar classes):

>>> from opchain.datastream.functions import MapFunction
>>> from opchain.testing import OneInputOperatorHarness
>>> class Double(MapFunction):
...     def map(self, value):
...         return 2 * value
>>> with OneInputOperatorHarness(Double()) as harness:
...     harness.process_element(21, timestamp=1000)
...     harness.records()
[EmittedRecord(value=42, timestamp=1000)]

`faults.run_with_kills` runs a job with checkpoints, and kills its processes at chosen moments.

`SinkConformance` tests a sink by killing it at every line of its code.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.compiler.assertions.chaining import (
        assert_chained,
        assert_not_chained,
        assert_plan_matches,
        plan_of,
    )
    from opchain.runtime.testing import faults
    from opchain.runtime.testing.operator_harness import (
        EmittedRecord,
        EmittedWatermark,
        KeyedOneInputOperatorHarness,
        KeyedTwoInputOperatorHarness,
        ManualClock,
        OneInputOperatorHarness,
        TwoInputOperatorHarness,
    )
    from opchain.runtime.testing.sinks import SinkConformance

_HARNESSES = "opchain.runtime.testing.operator_harness"
_MODULES = {
    "EmittedRecord": "opchain.runtime.testing.operator_harness",
    "EmittedWatermark": "opchain.runtime.testing.operator_harness",
    "KeyedOneInputOperatorHarness": _HARNESSES,
    "KeyedTwoInputOperatorHarness": _HARNESSES,
    "ManualClock": "opchain.runtime.testing.operator_harness",
    "OneInputOperatorHarness": _HARNESSES,
    "SinkConformance": "opchain.runtime.testing.sinks",
    "TwoInputOperatorHarness": _HARNESSES,
    "assert_chained": "opchain.compiler.assertions.chaining",
    "assert_not_chained": "opchain.compiler.assertions.chaining",
    "assert_plan_matches": "opchain.compiler.assertions.chaining",
    "plan_of": "opchain.compiler.assertions.chaining",
}


def __getattr__(name: str) -> Any:
    """Imports a name when it is first used: assertions need the compiler, harnesses need the runtime."""
    if name == "faults":
        return import_module("opchain.runtime.testing.faults")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*_MODULES, "faults"])


__all__ = [
    "EmittedRecord",
    "EmittedWatermark",
    "KeyedOneInputOperatorHarness",
    "KeyedTwoInputOperatorHarness",
    "ManualClock",
    "OneInputOperatorHarness",
    "SinkConformance",
    "TwoInputOperatorHarness",
    "assert_chained",
    "assert_not_chained",
    "assert_plan_matches",
    "faults",
    "plan_of",
]
