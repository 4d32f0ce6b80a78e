"""Reads of a broadcast state become look-ups in its dictionary.

>>> from opchain.common import Types
>>> from opchain.datastream import BroadcastProcessFunction
>>> from opchain.datastream.state import MapStateDescriptor
>>> rules = MapStateDescriptor("rules", Types.LONG(), Types.STRING())
>>> class Names(BroadcastProcessFunction):
...     def process_element(self, value, ctx):
...         texts = ctx.get_broadcast_state(rules)
...         if value in texts:
...             yield texts.get(value)
...     def process_broadcast_element(self, value, ctx):
...         ctx.get_broadcast_state(rules).put(value, str(value))
>>> change(
...     "inline_broadcast_states",
...     lambda numbers: numbers.connect(numbers.broadcast(rules)).process(Names()),
...     vertex=1,
... )
+ broadcast_0_0, entries_0_0, copies_0_0, copied_0_0 = broadcast_state_0(lambda: rules_0)
-   texts_0 = context_0.get_broadcast_state(rules_0)
-   if not (value in texts_0):
+   if not (value in entries_0_0):
-   value_0 = texts_0.get(value)
+   value_0 = entries_0_0.get(value)

The state always has the same dictionary, so the loop fetches it once per batch. Loops over the state run over its copy, as
its own iterators do. The descriptor must be a global name, or an attribute that only `__init__` sets. If there is no state
of this descriptor, the first record that reads it registers it or fails (BroadcastStates.look_ups).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.changing_attributes import called_by_syntax, changing_attributes
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.state_access.as_calls import as_calls
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.program.vertex_program import NO_OPERATOR

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet


_BROADCAST = (specs.BroadcastProcessSpec, specs.KeyedBroadcastProcessSpec)

_METHODS = {
    ("get", 1): "entries.get(key)",
    ("contains", 1): "key in entries",
    ("is_empty", 0): "not entries",
    ("items", 0): "iter(copies.get('items') or copied('items'))",
    ("keys", 0): "iter(copies.get('keys') or copied('keys'))",
    ("values", 0): "iter(copies.get('values') or copied('values'))",
}
"""What the methods of ReadOnlyBroadcastMap do, by name and number of arguments."""


def inline_broadcast_states(form: f.Form) -> None:
    """Rewrites the functions over batches, and over timers, whose head reads broadcast state."""
    spec = form.program.operators[0].spec
    if isinstance(spec, _BROADCAST):
        kind: Any = type(spec.function)
        for function in form.batch_functions():
            if function.name in ("process_0", "fire_0"):
                _rewrite(form, function, changing_attributes(kind))


def _rewrite(form: f.Form, function: f.Function, changing: AbstractSet[str] | None) -> None:
    asked = _Asked(function, changing)
    body = [asked.visit(statement) for statement in function.body]
    for state, descriptor in asked.states.items():
        body = as_calls(_without_names_of(state, body), state, "broadcast map")
        reads = _Reads(state)
        body = [reads.visit(statement) for statement in body]
        find = form.names.bind("broadcast_state_0", "broadcast_state", 0)
        variables = ", ".join([state, *reads.parts])
        text = f"{variables} = {find}(lambda: descriptor)"
        function.before += f.statements(text, NO_OPERATOR, descriptor=descriptor)
    function.body = body


def _without_names_of(state: str, body: f.Lines) -> f.Lines:
    """The body without variables that are set to the state once, and to nothing else."""
    stores = f.stores(body)
    named = [
        item
        for item in f.all_statements(body)
        if f.variable_set(item) and f.is_load_of(item.value, state)  # type: ignore[attr-defined]
        if stores[f.variable_set(item)] == 1
    ]
    body = f.rewritten(body, lambda item: [] if item in named else None)
    return f.equal_replaced(body, {f.variable_set(item): f.name(state) for item in named})


class _Asked(ast.NodeTransformer):
    """Replaces calls that get a broadcast state by variables. `states` has an expression for the descriptor of each."""

    def __init__(self, function: f.Function, changing: AbstractSet[str] | None) -> None:
        self.states: dict[str, ast.expr] = {}
        self._numbers: dict[str, int] = {}
        self._stores = f.stores(function.body)
        self._changing = changing

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if text_of(node.func) != "context_0.get_broadcast_state" or len(node.args) != 1:
            return node
        descriptor = self._fixed(node.args[0])
        if descriptor is None:
            return node
        number = self._numbers.setdefault(text_of(descriptor), len(self._numbers))
        state = f"broadcast_{number}_0"
        self.states[state] = descriptor
        return f.placed(f.name(state), node)

    def _fixed(self, descriptor: ast.expr) -> ast.expr | None:
        """An expression that gives the same descriptor before the first record. None if there may be another."""
        match descriptor:
            case ast.Name(id=name) if name not in self._stores:
                return descriptor
            case ast.Attribute(value=ast.Name(id="self_0"), attr=name):
                if self._changing is not None and name not in self._changing:
                    return descriptor
        return None


class _Reads(ast.NodeTransformer):
    def __init__(self, state: str) -> None:
        self._state = state
        self.parts = [f"{part}{state.removeprefix('broadcast')}" for part in _PARTS]
        self._parts = dict(zip(_PARTS, map(f.name, self.parts), strict=True))
        self._iterated: set[int] = set()

    def visit(self, node: ast.AST) -> Any:
        """Nothing is called to iterate over a list at once."""
        if not isinstance(node, ast.Subscript):
            self._iterated.update(map(id, called_by_syntax(node)))
        return super().visit(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(
                func=ast.Attribute(value=state, attr=method), args=arguments, keywords=[]
            ):
                text = _METHODS.get((method, len(arguments)))
                if not text or not f.is_load_of(state, self._state):
                    return node
                if any(isinstance(each, ast.Starred) for each in arguments):
                    return node
                if id(node) in self._iterated:
                    text = text.removeprefix("iter")
                key = dict(zip(("key",), arguments, strict=False))
                return f.placed(f.expression(text, **self._parts, **key), node)
        return node


_PARTS = ("entries", "copies", "copied")
