"""Looks up a broadcast state once per batch instead of once per record.

>>> from opchain.common import Types
>>> from opchain.datastream import BroadcastProcessFunction
>>> from opchain.datastream.state import MapStateDescriptor
>>> rules = MapStateDescriptor("rules", Types.LONG(), Types.STRING())
>>> class Names(BroadcastProcessFunction):
...     def process_element(self, value, ctx):
...         yield ctx.get_broadcast_state(rules).get(value)
...     def process_broadcast_element(self, value, ctx):
...         ctx.get_broadcast_state(rules).put(value, str(value))
>>> change(
...     "cache_broadcast_states",
...     lambda numbers: numbers.connect(numbers.broadcast(rules)).process(Names()),
...     vertex=1,
... )
+ broadcast_0_0 = None
-   value_0 = context_0.get_broadcast_state(rules_0).get(value)
+   value_0 = (broadcast_0_0 or (broadcast_0_0 := context_0.get_broadcast_state(rules_0))).get(value)

The state is always the same object. It is fetched at the function's first call, so an error is raised there. The
descriptor must be a global name, or an attribute that only `__init__` sets.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.changing_attributes import changing_attributes
from opchain.compiler.codegen.source_text import text_of
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.program.vertex_program import NO_OPERATOR

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from opchain.compiler.codegen.form import Form, Function

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BROADCAST = (specs.BroadcastProcessSpec, specs.KeyedBroadcastProcessSpec)


def cache_broadcast_states(form: Form) -> None:
    """Rewrites the functions over batches whose head reads broadcast state."""
    spec = form.program.operators[0].spec
    if isinstance(spec, _BROADCAST):
        kind: Any = type(spec.function)
        for function in form.batch_functions():
            if function.name == "process_0":
                asked = _Asked(function, changing_attributes(kind))
                function.body = [asked.visit(statement) for statement in function.body]
                for variable in asked.variables.values():
                    function.before += f.statements(f"{variable} = None", NO_OPERATOR)


class _Asked(ast.NodeTransformer):
    def __init__(self, function: Function, changing: AbstractSet[str] | None) -> None:
        self.variables: dict[str, str] = {}
        self._stores = f.stores(function.body)
        self._changing = changing

    def visit(self, node: ast.AST) -> Any:
        """Comprehensions are not rewritten, because no variable can be set at their start."""
        return node if isinstance(node, _COMPREHENSIONS) else super().visit(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if text_of(node.func) != "context_0.get_broadcast_state" or len(node.args) != 1:
            return node
        if not self._is_fixed(node.args[0]):
            return node
        name = f"broadcast_{len(self.variables)}_0"
        variable = self.variables.setdefault(text_of(node.args[0]), name)
        return f.expression(f"{variable} or ({variable} := asked)", asked=node)

    def _is_fixed(self, descriptor: ast.expr) -> bool:
        if isinstance(descriptor, ast.Attribute):
            is_own = text_of(descriptor.value) == "self_0"
            return is_own and self._changing is not None and descriptor.attr not in self._changing
        return isinstance(descriptor, ast.Name) and descriptor.id not in self._stores
