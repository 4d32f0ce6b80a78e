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
+ turn = 0
+   if not turn:
+     turn = (yield)
+   turn -= 1
+ yield

Batch mode sorts the records of both inputs by key. So there may be only one record before the other input comes. A call
per turn took 5 microseconds. A generator continues where it stopped, which takes 0.1 (OperatorChain.process_turns).
Each turn begins with the number of its records. At its end a function yields once more.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.runtime.program.vertex_program import NO_OPERATOR

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form


def alternate_inputs(form: Form) -> None:
    """Turns the functions over batches into generators, if all of them are loops."""
    functions = [
        item
        for item in form.batch_functions()
        if "values" in item.arguments and not item.name.startswith("batch_")
    ]
    loops = [item.body[0] for item in functions if len(item.body) == 1]
    if not form.takes_turns or len(loops) != len(functions):
        return
    if not all(isinstance(loop, ast.For) for loop in loops):
        return
    for function, loop in zip(functions, loops, strict=True):
        assert isinstance(loop, ast.For)
        function.before += f.statements("turn = 0", NO_OPERATOR)
        loop.body[:0] = f.statements("if not turn:\n    turn = yield\nturn -= 1", NO_OPERATOR)
        function.at_end += f.statements("yield", NO_OPERATOR)
        function.takes_turns = True
