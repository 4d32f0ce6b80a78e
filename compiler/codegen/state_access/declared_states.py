"""The states that the method `open` of a function gets from its context."""

from __future__ import annotations

import ast
import builtins
import inspect
from contextlib import suppress
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.changing_attributes import attributes_handed_on, changing_attributes
from opchain.compiler.codegen.function_source import Definition, Refused, definition_of, value_of
from opchain.compiler.codegen.source_text import text_of
from opchain.runtime.functions.record_functions import AggregateFunction, ReduceFunction
from opchain.runtime.functions.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.state.declared_values import checked_type, functions_of
from opchain.runtime.types.container_types import ListTypeInfo, MapTypeInfo
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from opchain.runtime.types.type_information import TypeInformation

_WITH_FUNCTION = (ReducingStateDescriptor, AggregatingStateDescriptor)
_DESCRIPTORS = (ValueStateDescriptor, ListStateDescriptor, MapStateDescriptor, *_WITH_FUNCTION)
_GETTERS = {
    "get_state": "value",
    "get_list_state": "list",
    "get_map_state": "map",
    "get_reducing_state": "reducing",
    "get_aggregating_state": "aggregating",
}


class DeclaredState(NamedTuple):
    """A state as `open` declares it.

    Attributes:
        kind: "value", "list", "map", "reducing" or "aggregating"; with a time to live "expiring value" and so on.
        declared: The text of its type, if it checks what is written.
        items: The types of what is written.
        functions: The functions of a reducing or aggregating state by name, as far as the compiler knows them.
    """

    kind: str
    declared: str | None
    items: tuple[TypeInformation[Any], ...]
    functions: Mapping[str, Any]

    def self_contained(self) -> Iterator[tuple[str, Any]]:
        """The functions that only refer to their parameters and to builtins, so that their code says what they do."""
        return (found for found in self.functions.items() if _is_self_contained(found[1]))


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
                        state = _state(node.value, context, definition, function)
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


def _is_self_contained(function: Any) -> bool:
    plain = getattr(function, "__func__", function)
    if not isinstance(plain, FunctionType) or plain.__closure__:
        return False
    codes = [plain.__code__]
    for code in codes:
        codes += (item for item in code.co_consts if isinstance(item, CodeType))
    makes_lambdas = any(code.co_name == "<lambda>" for code in codes[1:])
    return not makes_lambdas and all(
        plain.__globals__.keys().isdisjoint(code.co_names) for code in codes
    )


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


def _state(
    value: ast.expr, context: str, definition: Definition, function: object
) -> DeclaredState | None:
    called = value.func if isinstance(value, ast.Call) else None
    if not (isinstance(called, ast.Attribute) and text_of(called.value) == context):
        return None
    kind = _GETTERS.get(called.attr)
    if kind is None:
        return None
    assert isinstance(value, ast.Call)
    arguments = [*value.args, *(item.value for item in value.keywords if item.arg)]
    if len(arguments) != 1 or isinstance(arguments[0], ast.Starred):
        return None
    (argument,) = arguments
    descriptor = _object(argument, definition, function)
    declared = descriptor.type_info if isinstance(descriptor, StateDescriptor) else None
    items: tuple[TypeInformation[Any], ...] = () if declared is None else (declared,)
    if kind == "list" and isinstance(declared, ListTypeInfo):
        items = (declared.element_type,)
    elif kind == "map" and isinstance(declared, MapTypeInfo):
        items = (declared.key_type_info, declared.value_type_info)
    config = getattr(descriptor, "ttl_config", None)
    expires = (config is not None and config.is_enabled()) or _expires(argument, definition)
    if kind in ("reducing", "aggregating"):
        if expires or not isinstance(descriptor, _WITH_FUNCTION):
            return None
        return DeclaredState(kind, checked_type(declared), items, functions_of(descriptor))
    return DeclaredState(f"expiring {kind}" if expires else kind, checked_type(declared), items, {})


def _expires(descriptor: ast.expr, definition: Definition) -> bool:
    """Whether `open` gives a descriptor a time to live."""
    enables = f"{text_of(descriptor)}.enable_time_to_live"
    calls = (node for node in f.nodes(definition.body) if isinstance(node, ast.Call))
    return any(text_of(node.func) == enables for node in calls)


def _object(  # noqa: PLR0911 - one a kind of expression
    node: ast.expr, definition: Definition, function: object
) -> Any:
    """The descriptor, type or constant that an expression in `open` gives, such as `self.descriptor`. None if unknown.

    The loop checks the kind and type of each state where it runs, so the value may have changed since.
    """
    found = partial(_object, definition=definition, function=function)
    match node:
        case ast.Constant(value=constant):
            return constant
        case ast.List(elts=elements):
            return [*map(found, elements)]
        case ast.Name(id=name) if name == definition.parameters[0]:
            return function
        case ast.Name(id=name):
            assigned = _assigned(name, definition)
            if assigned is not None:
                return found(assigned)
            return value_of(name, definition.function) or getattr(builtins, name, None)
        case ast.Lambda():
            return _lambda_at(node.lineno, definition.function)
        case ast.Attribute(value=owner, attr=name):
            return inspect.getattr_static(found(owner), name, None)
        case ast.Call():
            return _made(node, found)
    return None


def _made(call: ast.Call, found: Callable[[ast.expr], Any]) -> Any:
    """The result of a call that makes a descriptor, a type or a function. The name of the state may be unknown.

    A function is an object without its attributes, because its class may do anything to set them.
    """
    make, given = found(call.func), [*map(found, call.args)]
    named = {str(item.arg): found(item.value) for item in call.keywords}
    if isinstance(make, type) and make in _DESCRIPTORS:
        named.pop("name", None)
        given = ["state", *given[1:]]
    elif isinstance(make, type) and issubclass(make, (ReduceFunction, AggregateFunction)):
        make, given, named = object.__new__, [make], {}
    elif not (isinstance(call.func, ast.Attribute) and found(call.func.value) is Types):
        return None
    if any(value is None for value in (*given, *named.values())):
        return None
    with suppress(TypeError, ValueError):  # `open` will raise it
        return make(*given, **named)
    return None


def _lambda_at(line: int, function: FunctionType) -> FunctionType | None:
    """The only lambda without closure that a function defines at a line."""
    found = [
        item
        for item in function.__code__.co_consts
        if isinstance(item, CodeType) and (item.co_name, item.co_firstlineno) == ("<lambda>", line)
    ]
    is_known = len(found) == 1 and not found[0].co_freevars
    return FunctionType(found[0], function.__globals__) if is_known else None


def _assigned(name: str, definition: Definition) -> ast.expr | None:
    """What a local variable of `open` is set to, once."""
    values = [
        item.value
        for item in definition.body
        if isinstance(item, ast.Assign) and text_of(item.targets[0]) == name
    ]
    return values[0] if len(values) == 1 and not f.reads(values[0], name) else None
