"""Calls of a state's methods as look-ups in its dictionary, or as a variable with the entry of the current key."""

from __future__ import annotations

import ast
from textwrap import indent
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import only_reads
from opchain.compiler.codegen.function_source import calls_builtin
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.static_types import plain_type, type_of
from opchain.runtime.types.coders import coder_converter, form_test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.compiler.codegen.state_access.declared_states import DeclaredState
    from opchain.runtime.types.type_information import TypeInformation


_EXPRESSIONS = {
    ("value", "value", 0): "table.get(key)",
    ("list", "get", 0): "[*table.get(key, ())]",
    ("map", "get", 1): "table.get(key, {}).get(first)",
    ("map", "contains", 1): "first in table.get(key, {})",
    ("map", "keys", 0): "iter(list(table.get(key, ())))",
    ("map", "values", 0): "iter(list(table.get(key, {}).values()))",
    ("map", "items", 0): "iter(list(table.get(key, {}).items()))",
    ("map", "is_empty", 0): "key not in table",
    ("reducing", "get", 0): "table.get(key)",
    ("aggregating", "get", 0): ("None if (held := table.get(key)) is None else result(held)"),
    ("expiring value", "value", 0): (
        "held[1] if (now := accessed()) < (held := table.get(key, NOTHING))[0] + unchanged_ms"
        " else read(key, now)[1]"
    ),
    ("expiring list", "get", 0): "read(key, accessed())",
    ("expiring map", "keys", 0): "iter([name for name, _ in read_all(key, accessed())])",
    ("expiring map", "values", 0): "iter([item for _, item in read_all(key, accessed())])",
    ("expiring map", "items", 0): "iter(read_all(key, accessed()))",
    ("expiring map", "get", 1): (
        "held[1] if (now := accessed()) < (held := table.get(key, {}).get(first, NOTHING))[0] + unchanged_ms"
        " else read(key, first, now)[1]"
    ),
    ("expiring map", "contains", 1): (
        "(held if (now := accessed()) < (held := table.get(key, {}).get(first, NOTHING))[0] + unchanged_ms"
        " else read(key, first, now)) is not NOTHING"
    ),
}
_CLEAR = "table.pop(key, None)"
_UNLESS_NONE = f"if first is None:\n    {_CLEAR}\nelse:\n"
_UPDATE_LIST = f"if first:\n    table[key] = first\nelse:\n    {_CLEAR}"
_REMOVE = (
    "held = table.get(key)\n"
    f"if held is not None:\n    held.pop(first, None)\n    if not held:\n        {_CLEAR}"
)
_REDUCE = (
    "held = table.get(key)\n"
    "if held is None:\n    table[key] = first\n"
    "else:\n    new = combined(held, first)\n    table[key] = new"
)
_AGGREGATE = (
    "held = table.get(key)\n"
    "new = combined(first, create() if held is None else held)\ntable[key] = new"
)
_STATEMENTS = {
    ("value", "clear", 0): _CLEAR,
    ("list", "clear", 0): _CLEAR,
    ("map", "clear", 0): _CLEAR,
    ("value", "update", 1): f"{_UNLESS_NONE}    table[key] = first",
    ("list", "add", 1): (
        "held = table.get(key)\n"
        "if held is None:\n    table[key] = [first]\nelse:\n    held.append(first)"
    ),
    ("list", "update", 1): _UPDATE_LIST,
    ("map", "put", 2): (
        "held = table.get(key)\n"
        "if held is None:\n    table[key] = {first: second}\nelse:\n    held[first] = second"
    ),
    ("map", "remove", 1): _REMOVE,
    ("reducing", "clear", 0): _CLEAR,
    ("reducing", "add", 1): _UNLESS_NONE + indent(_REDUCE, "    "),
    ("aggregating", "clear", 0): _CLEAR,
    ("aggregating", "add", 1): _UNLESS_NONE + indent(_AGGREGATE, "    "),
    ("expiring value", "clear", 0): _CLEAR,
    ("expiring list", "clear", 0): _CLEAR,
    ("expiring map", "clear", 0): _CLEAR,
    ("expiring value", "update", 1): (
        f"if first is None:\n    accessed()\n    {_CLEAR}\nelse:\n    table[key] = (accessed(), first)"
    ),
    ("expiring list", "add", 1): (
        "now = accessed()\nheld = table.get(key)\n"
        "if held is None:\n    table[key] = [(now, first)]\nelse:\n    held.append((now, first))"
    ),
    ("expiring list", "update", 1): (
        f"now = accessed()\nfirst = [(now, element) for element in first]\n{_UPDATE_LIST}"
    ),
    ("expiring map", "remove", 1): f"accessed()\n{_REMOVE}",
    ("expiring map", "put", 2): (
        "now = accessed()\nheld = table.get(key)\n"
        "if held is None:\n    table[key] = {first: (now, second)}\nelse:\n    held[first] = (now, second)"
    ),
}
"""What the methods of hash_map_states and ttl_states do, by kind, method and number of arguments."""

_AS_HELD = (
    ("    held = table.get(key)\n", ""),
    ("held = table.get(key)\n", ""),
    ("(held := table.get(key))", "held"),
    ("table.get(key)", "held"),
    ("table.get(key, ", "(held or "),
    (_CLEAR, "held = None"),
    ("key not in table", "held is None"),
    ("key in table", "held is not None"),
    ("table[key]", "held"),
)
"""How the texts change if the entry of the key is in the variable `held`."""
_NEVER_NONE_STORE = {
    "value": "table[key] = first",
    "expiring value": "table[key] = (accessed(), first)",
    "reducing": _REDUCE,
    "aggregating": _AGGREGATE,
}
"""How an update or an addition stores a value that is not None."""

_VARIABLES = {"first": "first", "second": "item"}
"""How the variables of arguments begin. The name of a state follows, so no other state has the same variables."""

STORE = "if held is not None:\n    table[key] = held"
TAKE = f"held = {_CLEAR}"

EXPIRING = ("expiring value", "expiring list", "expiring map")
"""The kinds of state with a time to live."""

_LISTS = ("list", "expiring list")
_WRITES = ("update", "add", "put")
_NEVER_NONE = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.JoinedStr, ast.Compare)


def is_only_called(block: f.Lines, owner: str, name: str) -> bool:
    """Whether an attribute is read for its methods only, and never set."""
    found = (node for node in f.nodes(block) if isinstance(node, ast.Attribute))
    reads = sum(node.attr == name and text_of(node.value) == owner for node in found)
    return reads == len(state_calls(block, owner, name))


def state_calls(block: f.Lines, owner: str, name: str) -> list[ast.Call]:
    """The calls of methods of `owner.name`."""
    return [node for node in calls_in(block) if method_called(node, owner, name)]


def calls_in(block: f.Lines) -> Iterator[ast.Call]:
    """All calls in a block."""
    return (node for node in f.nodes(block) if isinstance(node, ast.Call))


def method_called(call: ast.Call, owner: str, name: str) -> str:
    """The method of `owner.name` that is called."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(value=ast.Name(id=of), attr=state), attr=method),
            keywords=[],
        ) if (of, state) == (owner, name):
            return method
    return ""


class LookUps(ast.NodeTransformer):
    """Replaces the calls of one state's methods."""

    def __init__(
        self,
        form: f.Form,
        owner: str,
        name: str,
        state: DeclaredState,
        table: str,
        key: str,
        held: str,
    ) -> None:
        self._form = form
        self._owner = owner
        self._name = name
        self.kind = state.kind
        self.table = table
        self._state = state
        self._items = state.items
        self.held = held
        self._is_held = False
        self._parts: dict[str, ast.expr] = {
            "table": f.name(table),
            "key": f.name(key),
            "held": f.name(held),
        }
        self._suffix = table.partition("_")[2]
        self._read = f"read_{self._suffix}"
        parts: tuple[str, ...] = ()
        if self.expires:
            form.names.bind("NOTHING", "shared")
            parts = ("accessed", "read", "read_all", "unchanged_ms", "now")
        elif state.functions:
            parts = ("new", *state.functions)
        self._parts |= {part: f.name(f"{part}_{self._suffix}") for part in parts}

    @property
    def expires(self) -> bool:
        """Whether the state has a time to live."""
        return self.kind in EXPIRING

    def prepared(self, operator: int) -> f.Lines:
        """Statements before the first record."""
        if not self.expires:
            return []
        found = self._form.names.bind(f"ttl_{self._suffix}", "state_ttl", operator, self._name)
        return self.lines(f"accessed, unchanged_ms, read, read_all = {found}()", operator)

    def callees(self, operator: int) -> dict[str, f.Callee]:
        """The functions of the state that may become part of the loop, by their names in generated code."""
        path = ("state_functions", operator, self._name)
        return {
            f"{part}_{self._suffix}": f.Callee(
                getattr(function, "__func__", function),
                path,
                instance=getattr(function, "__self__", None),
            )
            for part, function in self._state.self_contained()
        }

    def functions(self, block: f.Lines, operator: int) -> f.Lines:
        """Statements that set the variables of those functions of the state that the block calls."""
        used = f.names_in(block)
        found: f.Lines = []
        for part in self._state.functions:
            name = f"{part}_{self._suffix}"
            if name in used:
                functions = f"functions_{self._suffix}"
                self._form.names.bind(functions, "state_functions", operator, self._name)
                found += f.statements(f"{name} = {functions}()[{part!r}]", operator)
        return found

    def lines(self, text: str, operator: int, **parts: ast.expr) -> f.Lines:
        """Statements with this state's table, key and variable."""
        return f.statements(text, operator, **(self._parts | parts))

    def block(self, block: f.Lines, types: dict[str, Any], *, is_held: bool) -> f.Lines:
        """The block with statements and expressions replaced."""
        self._is_held = is_held
        done = f.rewritten(block, lambda statement: self._statement(statement, types))
        return [self.visit(statement) for statement in done]

    def _statement(self, statement: ast.stmt, types: dict[str, Any]) -> f.Lines | None:
        call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
        method = method_called(call, self._owner, self._name) if isinstance(call, ast.Call) else ""
        if not method:
            return None
        assert isinstance(call, ast.Call)
        if isinstance(statement, ast.Assign):
            return self._with_arguments_before(statement, call)
        text = _STATEMENTS.get((self.kind, method, len(call.args)))
        if text is None or any(isinstance(item, ast.Starred) for item in call.args):
            return None
        operator = notes.operator(statement)
        tests = self._tests(method, call.args, types)
        if self.kind in _LISTS and method == "update":
            call.args[0] = f.expression("list(elements)", elements=call.args[0])
        is_one_value = method == "update" and self.kind not in _LISTS
        if (self.kind in _NEVER_NONE_STORE and method in _WRITES) and (
            (self._is_held and is_one_value) or tests or _is_never_none(call.args[0], types)
        ):
            text = _NEVER_NONE_STORE[self.kind]
        lines: f.Lines = []
        parts = dict(self._parts)
        is_used_once = text == "table[key] = first" and not any(tests)
        sets_variable = any(isinstance(node, ast.NamedExpr) for node in ast.walk(call))
        for position, (part, argument) in enumerate(zip(("first", "second"), call.args)):  # noqa: B905 - two at most
            if not is_used_once and (sets_variable or not _is_simple(argument)):
                variable = f"{_VARIABLES[part]}_{self._suffix}"
                lines.append(f.let(variable, argument, operator))
                call.args[position] = f.name(variable)
            parts[part] = call.args[position]
        stored = f.statements(self._text(text), operator, **parts)
        condition = " and ".join(filter(None, tests))
        if condition:
            is_right = f.expression(condition, **parts)
            called = self._called(call, operator, replaces_entry=is_one_value)
            stored = f.marked([ast.If(is_right, stored, called)], operator)
        return f.with_comment(f.placed([*lines, *stored], call), notes.comment(statement))

    def _called(self, call: ast.Call, operator: int, *, replaces_entry: bool) -> f.Lines:
        """The call of the state itself. Then the entry is read from the table again, even if the state refused the value."""
        notes.is_state.set(call, True)
        notes.is_field.set(call.func, True)
        if not self._is_held:
            return [ast.Expr(call)]
        notes.has_key.set(call, True)
        take = self.lines(TAKE, operator)
        if replaces_entry:
            return [ast.Expr(call), *take]
        return [*self.lines(STORE, operator), ast.Try([ast.Expr(call)], [], [], take)]

    def _tests(self, method: str, arguments: list[ast.expr], types: dict[str, Any]) -> list[str]:
        """Expressions that check whether the written values, `first` and `second`, have the declared type.

        An expression is empty if the type of its value is known. The list is empty if the state takes any value.
        """
        if method not in _WRITES or not self._items or self.kind == "aggregating":
            return []
        if all(coder_converter(item) is None for item in self._items):
            return []
        if self.kind in _LISTS and method == "update":
            return [self._fits("fits_each", self._items[0], "first")]
        tests = [
            form_test(declared, part, plain_type(type_of(argument, types)), is_exact=True)
            for declared, part, argument in zip(self._items, ("first", "second"), arguments)  # noqa: B905 - two at most
        ]
        return [
            self._fits("fits", declared, part) if test is None else test
            for declared, part, test in zip(self._items, ("first", "second"), tests)  # noqa: B905 - two at most
        ]

    def _fits(self, kind: str, declared: TypeInformation[Any], part: str) -> str:
        """A call that says whether a value can be converted to a type without a short test, or each value of a list."""
        index = self._owner.rpartition("_")[2]
        fits = self._form.names.bind(f"{kind}_{index}_{self._name}_{part}", kind, declared)
        return f"{fits}({part})"

    def _with_arguments_before(self, statement: ast.Assign, call: ast.Call) -> f.Lines:
        """Assigns arguments such as `f(y)` in `x = state.get(f(y))` to variables before the look-up."""
        lines: f.Lines = []
        for position, argument in enumerate(call.args):
            if not _is_simple(argument) and not isinstance(argument, ast.Starred):
                variable = f"{_VARIABLES['first']}_{self._suffix}"
                lines.append(f.let(variable, argument, notes.operator(statement)))
                call.args[position] = f.name(variable)
        return [*f.with_comment(lines, notes.comment(statement)), statement]

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        """Python allows no assignment expression where a comprehension iterates."""
        if not (self.expires or self.kind == "aggregating"):
            self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """The look-up in place of a call within an expression. The list of `list(state.get())` is not copied again."""
        self.generic_visit(node)
        if calls_builtin(node) and f.called(node) == "list" and self._is_list(node.args):
            return node.args[0]
        method = method_called(node, self._owner, self._name)
        text = _EXPRESSIONS.get((self.kind, method, len(node.args)))
        is_once = not self.expires and all(map(only_reads, node.args))
        if text is None or not (is_once or all(map(_is_simple, node.args))):
            return node
        first = dict(zip(("first",), node.args, strict=False))
        return f.placed(f.expression(self._text(text), **self._parts, **first), node)

    def _is_list(self, arguments: list[ast.expr]) -> bool:
        """Whether the only argument is a new list."""
        (made,) = arguments if len(arguments) == 1 else (None,)
        reads = self.kind == "expiring list" and made and f.called(made) == self._read
        return isinstance(made, ast.List) or bool(reads)

    def _text(self, text: str) -> str:
        """The text of a method, adapted if the entry of the key is in a variable, or if results are checked."""
        for part, held in _AS_HELD if self._is_held else ():
            text = text.replace(part, held)
        if self._state.functions and self._items and coder_converter(self._items[0]) is not None:
            test = form_test(self._items[0], "new", None, is_exact=True)
            is_checked = "checked(new)" if test is None else f"new if {test} else checked(new)"
            text = text.replace("= new", f"= {is_checked}")
        return text


def _is_simple(node: ast.expr) -> bool:
    """Whether an expression has no side effects, and always the same value."""
    if isinstance(node, ast.Tuple):
        return all(map(_is_simple, node.elts))
    return isinstance(node, (ast.Name, ast.Constant))


def _is_never_none(node: ast.expr, types: dict[str, Any]) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is not None
    return isinstance(node, _NEVER_NONE) or type_of(node, types) not in (None, type(None))
