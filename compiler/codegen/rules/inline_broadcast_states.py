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
    states: dict[str, tuple[str, ast.expr]] = {}
    stores = f.stores(function.body)

    def named(node: ast.AST) -> ast.expr | None:
        """The variable of the state that a call gets."""
        match node:
            case ast.Call(args=[descriptor]) if _is_fixed(descriptor, stores.keys(), changing):
                if text_of(node.func) == "context_0.get_broadcast_state":
                    new = f"broadcast_{len(states)}_0", descriptor
                    state, _ = states.setdefault(text_of(descriptor), new)
                    return f.placed(f.name(state), node)
        return None

    body = f.changed(function.body, named, inner_first=True)
    for state, descriptor in states.values():
        body = as_calls(_without_names_of(state, body), state, "broadcast map")
        body = _with_look_ups(state, body)
        find = form.names.bind("broadcast_state_0", "broadcast_state", 0)
        variables = ", ".join(
            [state, *(f"{part}{state.removeprefix('broadcast')}" for part in _PARTS)]
        )
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


def _is_fixed(
    descriptor: ast.expr, stores: AbstractSet[str], changing: AbstractSet[str] | None
) -> bool:
    """Whether an expression gives the same descriptor before the first record."""
    match descriptor:
        case ast.Name(id=name):
            return name not in stores
        case ast.Attribute(value=ast.Name(id="self_0"), attr=name):
            return changing is not None and name not in changing
    return False


def _with_look_ups(state: str, body: f.Lines) -> f.Lines:
    """The body with look-ups in place of the calls of a state. Nothing is called to iterate over a list at once."""
    parts: dict[str, ast.expr] = {
        part: f.name(f"{part}{state.removeprefix('broadcast')}") for part in _PARTS
    }
    iterating = (node for node in f.nodes(body) if not isinstance(node, ast.Subscript))
    iterated = {id(item) for node in iterating for item in called_by_syntax(node)}

    def change(node: ast.AST) -> ast.expr | None:
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr=method), args=given, keywords=[]
            ) if name == state:
                text = _METHODS.get((method, len(given)), "")
                if not text or any(isinstance(each, ast.Starred) for each in given):
                    return None
                if id(node) in iterated:
                    text = text.removeprefix("iter")
                key = dict(zip(("key",), given, strict=False))
                return f.placed(f.expression(text, **parts, **key), node)
        return None

    return f.changed(body, change, inner_first=True)  # type: ignore[no-any-return]


_PARTS = ("entries", "copies", "copied")
