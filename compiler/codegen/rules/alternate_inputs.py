"""In batch mode, two keyed inputs are processed by two functions that take turns.

>>> from opchain.datastream import CoMapFunction
>>> class Signs(CoMapFunction):
...     def map1(self, value):
...         return value + 1
...     def map2(self, value):
...         return -value
>>> change(
...     "alternate_inputs",
...     lambda numbers: numbers.key_by(lambda x: x % 7)
...     .connect(numbers.key_by(lambda x: x % 5))
...     .map(Signs()),
...     vertex=1,
...     mode="BATCH",
... )
- for value in values:
-   value_0 = value + 1
-   values_0.append(value_0)
+ records = iter(values)
+ turn = (yield)
+ while turn:
+   for value in islice(records, turn):
+     value_0 = value + 1
+     values_0.append(value_0)
+   turn = (yield)
+ yield

Batch mode sorts the records of both inputs by key. So a turn may have a single record. A call
per turn took 5 microseconds. A generator continues where it stopped, which takes 0.1 (OperatorChain.process_turns).
Each turn begins with the number of its records, and 0 ends the turns. At its end a function yields once more.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.runtime.program.vertex_program import NO_OPERATOR

if TYPE_CHECKING:
    from collections.abc import Iterator


def alternate_inputs(form: f.Form) -> None:
    """Turns the functions over batches into generators, if all of them are loops."""
    functions = [
        item
        for item in form.batch_functions()
        if "values" in item.arguments and item.kind != "batch"
    ]
    loops = [loop for item in functions for loop in _loops(item.body)]
    if not form.takes_turns or len(loops) != len(functions):
        return
    form.names.bind("islice", "shared")
    for function, loop in zip(functions, loops, strict=True):
        begin = "records = iter(values)\nturn = yield"
        function.before += f.statements(begin, NO_OPERATOR, values=loop.iter)
        loop.iter = f.expression("islice(records, turn)")
        (turns,) = f.statements("while turn:\n    turn = yield", NO_OPERATOR)
        turns.body[:0] = function.body  # type: ignore[attr-defined]
        function.body = [turns]
        function.at_end += f.statements("yield", NO_OPERATOR)
        function.takes_turns = True


def _loops(body: f.Lines) -> Iterator[ast.For]:
    """The loops over the records: in a `try` if attributes are stored after it."""
    for statement in body:
        if isinstance(statement, ast.For):
            yield statement
        elif isinstance(statement, ast.Try):
            yield from _loops(statement.body)
