"""The states that the method `open` of a function gets from its context."""

from __future__ import annotations

import ast
import inspect
from functools import lru_cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.changing_attributes import (
    attributes_handed_on,
    changing_attributes,
)
from opchain.compiler.codegen.function_source import Definition, Refused, definition_of
from opchain.compiler.codegen.source_text import text_of
from opchain.runtime.state.declared_values import checked_type
from opchain.runtime.types.container_types import ListTypeInfo, MapTypeInfo
from opchain.runtime.types.type_information import TypeInformation
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from collections.abc import Iterator

_GETTERS = {"get_state": "value", "get_list_state": "list", "get_map_state": "map"}


class DeclaredState(NamedTuple):
    """A state as `open` declares it.

    Attributes:
        kind: "value", "list" or "map"; with a time to live "expiring value" or "expiring map".
        declared: The text of its type, if it checks what is written.
        items: The types of what is written.
    """

    kind: str
    declared: str | None
    items: tuple[TypeInformation[Any], ...]


def declared_states(spec: object) -> dict[str, DeclaredState]:
    """The states that `open` gets, each by one assignment."""
    function = getattr(spec, "function", None)
    kind: Any = type(function)
    if function is None:
        return {}
    found: dict[str, list[DeclaredState | None]] = {}
    for definition in _opening(kind):
        own, context = (*definition.parameters, "", "")[:2]
        for node in f.nodes(definition.body):
            if isinstance(node, ast.Assign):
                for item in node.targets:
                    if isinstance(item, ast.Attribute) and text_of(item.value) == own:
                        state = _state(node.value, context, definition)
                        found.setdefault(item.attr, []).append(state)
    changing = changing_attributes(kind, of_states=True)
    if changing is None:
        return {}
    return {
        name: states[0]
        for name, states in found.items()
        if len(states) == 1
        and states[0]
        and name not in changing
        and name.isascii()
        and not hasattr(kind, name)
    }


@lru_cache(maxsize=256)
def states_are_handed_on(kind: type) -> bool:
    """Whether other objects than a function of this class may hold its states, or code that reads them."""
    handed_on = attributes_handed_on(kind)
    calls_next = False
    for definition in _opening(kind):
        own, context = (*definition.parameters, "", "")[:2]
        nodes = list(f.nodes(definition.body))
        used = [
            node
            for node in nodes
            if isinstance(node, ast.Attribute) and f.is_load_of(node.value, context)
        ]
        getters = [node for node in used if node.attr.endswith("_state")]
        kept = [
            node
            for node in nodes
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and node.value.func in getters
        ]
        calls_next = f"super().open({context})" in map(text_of, definition.body)
        if (
            f.reads(definition.body, context) > len(used) + calls_next
            or len(getters) > len(kept)
            or not all(
                isinstance(item, ast.Attribute)
                and text_of(item.value) == own
                and item.attr not in handed_on
                for node in kept
                for item in node.targets
            )
        ):
            return True
    members = (inspect.getattr_static(kind, name, None) for name in handed_on)
    return calls_next or any(isinstance(member, FunctionType) for member in members)


def _opening(kind: type) -> Iterator[Definition]:
    """The method `open` of a class, and the methods of base classes that `super().open(context)` calls."""
    for method in (vars(base)["open"] for base in kind.__mro__ if "open" in vars(base)):
        try:
            definition = definition_of(method)
        except Refused:
            return
        yield definition
        context = (*definition.parameters, "", "")[1]
        if f"super().open({context})" not in map(text_of, definition.body):
            return


def _state(value: ast.expr, context: str, definition: Definition) -> DeclaredState | None:
    called = value.func if isinstance(value, ast.Call) else None
    if not (isinstance(called, ast.Attribute) and text_of(called.value) == context):
        return None
    kind = _GETTERS.get(called.attr)
    if kind is None:
        return None
    assert isinstance(value, ast.Call)
    types = _types_of_descriptor(value.args[0], definition) if len(value.args) == 1 else []
    if kind == "map":
        declared: Any = MapTypeInfo(*types) if len(types) == 2 else None  # noqa: PLR2004 - of keys and values
    else:
        declared = types[0] if len(types) == 1 else None
    if declared is not None and kind == "list":
        declared = ListTypeInfo(declared)
    if _expires(value.args[0], definition):
        if kind == "list":
            return None
        kind = f"expiring {kind}"
    return DeclaredState(kind, checked_type(declared), tuple(types))


def _expires(descriptor: ast.expr, definition: Definition) -> bool:
    """Whether `open` gives a descriptor a time to live."""
    enables = f"{text_of(descriptor)}.enable_time_to_live"
    calls = (node for node in f.nodes(definition.body) if isinstance(node, ast.Call))
    return any(text_of(node.func) == enables for node in calls)


def _types_of_descriptor(node: ast.expr, definition: Definition) -> list[TypeInformation[Any]]:
    """The types that follow the name of a state in the call that creates its descriptor."""
    if isinstance(node, ast.Name):
        node = _assigned(node.id, definition) or node
    if not isinstance(node, ast.Call):
        return []
    types = [*node.args[1:], *(item.value for item in node.keywords if item.arg != "name")]
    found = [_evaluated(item, definition) for item in types]
    return [] if None in found else found


def _assigned(name: str, definition: Definition) -> ast.expr | None:
    """What a local variable of `open` is set to, once."""
    values = [
        item.value
        for item in definition.body
        if isinstance(item, ast.Assign) and text_of(item.targets[0]) == name
    ]
    return values[0] if len(values) == 1 else None


def _evaluated(node: ast.expr, definition: Definition) -> Any:
    """The type that an expression creates, such as `Types.LIST(Types.LONG())`. None for other expressions."""
    names: dict[str, Any] = {"__builtins__": {}}
    for item in ast.walk(node):
        if isinstance(item, ast.Name):
            value = _assigned(item.id, definition)
            known = definition.function.__globals__.get(item.id)
            names[item.id] = known if value is None else _evaluated(value, definition)
            if not (names[item.id] is Types or isinstance(names[item.id], TypeInformation)):
                return None
        elif (
            isinstance(item, ast.Call) and not isinstance(item.func, ast.Attribute)
        ) or not isinstance(
            item, (ast.Call, ast.Attribute, ast.Constant, ast.expr_context, ast.List)
        ):
            return None
    return eval(compile(ast.Expression(node), "<descriptor>", "eval"), names)  # noqa: S307 - it calls our types only
