"""Every example in a docstring runs."""

from __future__ import annotations

import difflib
import doctest
import importlib
import pkgutil
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

import opchain.compiler
import opchain.runtime
from opchain.common import Configuration, WatermarkStrategy
from opchain.compiler.codegen.rules import RULE_NAMES
from opchain.compiler.graph.plan import required
from opchain.compiler.passes.generate_code import generate_code
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import FileSource, StreamFormat

if TYPE_CHECKING:
    from collections.abc import Callable

MODULES = sorted(
    module.name
    for package in (opchain.compiler, opchain.runtime)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if ".spark" not in module.name
)


RULES = [f"opchain.compiler.codegen.rules.{name}" for name in RULE_NAMES]


def change(
    rule: str, draw: Callable[..., Any], *, vertex: int = 0, mode: str = "STREAMING"
) -> None:
    """Prints the lines of generated code that a rewrite rule changes, without comments, counters and fallbacks.

    `draw` gets a stream: `numbers` or `lines`, as its argument is called.
    """
    configuration = Configuration()
    configuration.set_string("execution.runtime-mode", mode)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "lines").build()
    sources = {
        "numbers": lambda: env.from_sequence(0, 9),
        "lines": lambda: env.from_source(lines, WatermarkStrategy.no_watermarks(), "lines"),
    }
    (name,) = draw.__code__.co_varnames[: draw.__code__.co_argcount]
    draw(sources[name]()).rebalance().print()
    plan = compile_program(env.program(), "programs")
    texts = []
    for without in ([rule], []):
        source = required(generate_code(plan, without=without).job_program).vertices[vertex].source
        first, *rest = (source or "").split("\ndef ")
        shown = first.splitlines()[2:]
        for text in rest:
            if text.startswith("in_any_order_"):
                head, _, *body = f"def {text}".splitlines()
                shown += textwrap.indent("\n".join([head, *body]), "    ").splitlines()
        hidden = () if rule == "count_once" else ("op_", "count_")
        texts.append(
            [
                line.partition("  #")[0].replace("    ", "  ")[2:]
                for line in shown
                if line and not line.strip().startswith(hidden)
            ]
        )
    for line in list(difflib.unified_diff(*texts, n=0, lineterm=""))[2:]:
        if not line.startswith("@@"):
            print(f"{line[0]} {line[1:]}")  # noqa: T201 - examples compare what is printed


@pytest.mark.parametrize("name", MODULES)
def test_doctests_of_each_module_pass(name: str) -> None:
    failed, tried = doctest.testmod(
        importlib.import_module(name), extraglobs={"change": change} if name in RULES else {}
    )
    assert failed == 0
    assert tried or name not in RULES, f"{name} shows no example of its rule"


def test_the_modules_have_doctests() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = (importlib.import_module(name) for name in MODULES)
    assert sum(bool(test.examples) for m in modules for test in finder.find(m)) > 20
