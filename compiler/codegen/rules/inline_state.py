"""Calls of state objects in inlined functions become look-ups in their dictionaries.

>>> from opchain.datastream.functions import FlatMapFunction
>>> from opchain.datastream.state import ValueStateDescriptor
>>> class Changes(FlatMapFunction):
...     def open(self, context):
...         self.last = context.get_state(ValueStateDescriptor("last"))
...
...     def flat_map(self, row):
...         if self.last.value() != row[1]:
...             self.last.update(row[1])
...             yield row
...
>>> change(
...     "inline_state",
...     lambda numbers: numbers.map(lambda x: (x % 7, x)).key_by(lambda row: row[0]).flat_map(Changes()),
...     vertex=1,
... )
+ if (table_0_last := table_0_last_found()) is None:
+   return calls_0(values)
+ if tracks_0():
+   touch_0([field_0 for field_0, field_1 in values.rows()])
-   set_key_0(field_0)
-   if not (self_0.last.value() != field_1):
+   if not (table_0_last.get(field_0) != field_1):
-   self_0.last.update(field_1)
+   table_0_last[field_0] = field_1
+ if values:
+   set_key_0(field_0)

The rule applies to value, list and map states that `open` gets from its context. At the start of a batch, the code checks
once whether each state is a plain dictionary: in memory, and without a time to live. If not, a copy of the function that
calls the state objects processes the batch. The current key is set only before code that may read it. If changes of
state are tracked, the backend gets all keys of a batch before the batch runs.

In batch mode, the records of a key follow each other. The key is set when it changes. The entries of a key are in
variables until the next key, if only this code can see them:

    if field_0 != last_key_0:
        if held_0_last is not None:
            table_0_last[last_key_0] = held_0_last
        set_key_0(field_0)
        last_key_0 = field_0
        held_0_last = table_0_last.pop(field_0, None)
    if not (held_0_last != field_1):
    ...
    held_0_last = field_1

A function without `on_timer` does not notice the end of a key, where the backend drops its entries. So these entries are not
stored, and the key is set only before code that may read it and after the batch.

Event-time timers of the function are registered and deleted directly in the operator's timer queue, with the current
key as an argument. This saves the calls of the TimerService:

    ctx_0.timer_service().register_event_time_timer(end_0)      add_timer_0(end_0, VOID, field_0)
    ctx_0.get_current_key()                                     field_0

The code of `on_timer` is rewritten in the same way, except in batch mode, where it runs once for each key. The timer has
the key of the table, and the backend gets the keys of timers one by one.

A state refuses values that are not of its declared type. A short test checks the type of a value. If the value passes, the
code stores it in the dictionary, otherwise it calls the state. For types without a short test, such as a Row, the test is a
call. Updates of whole lists keep their calls.
"""

from __future__ import annotations

import ast
import copy
from itertools import combinations
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.analysis import only_reads, types_of
from opchain.compiler.codegen.changing_attributes import changing_attributes
from opchain.compiler.codegen.function_source import (
    Definition,
    Refused,
    calls_builtin,
    definition_of,
)
from opchain.compiler.codegen.internal_functions import SETS_KEY, Trait, has
from opchain.compiler.codegen.names import stem
from opchain.compiler.codegen.rules.trust_known_types import fields_looked_at, key_program
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.static_types import plain_type, type_of
from opchain.runtime.functions.process_functions import has_on_timer
from opchain.runtime.program.vertex_program import NO_OPERATOR
from opchain.runtime.state.declared_values import checked_type
from opchain.runtime.state.keys.key_identity import key_identity
from opchain.runtime.types.coders import coder_converter, form_test
from opchain.runtime.types.container_types import ListTypeInfo, MapTypeInfo
from opchain.runtime.types.type_information import TypeInformation
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.compiler.codegen.form import Form, Function

    Lines = list[ast.stmt]
    _State = tuple[str, str | None, tuple[TypeInformation[Any], ...]]
    """The kind of a state, the text of its type if it checks what is written, and the types of what is written."""

_GETTERS = {"get_state": "value", "get_list_state": "list", "get_map_state": "map"}
_EXPRESSIONS = {
    ("value", "value", 0): "table.get(key)",
    ("list", "get", 0): "[*table.get(key, ())]",
    ("map", "get", 1): "table[key].get(first) if key in table else None",
    ("map", "contains", 1): "key in table and first in table[key]",
    ("map", "keys", 0): "iter(list(table.get(key, ())))",
    ("map", "values", 0): "iter(list(table.get(key, {}).values()))",
    ("map", "items", 0): "iter(list(table.get(key, {}).items()))",
    ("map", "is_empty", 0): "key not in table",
}
_CLEAR = "table.pop(key, None)"
_STATEMENTS = {
    ("value", "clear", 0): _CLEAR,
    ("list", "clear", 0): _CLEAR,
    ("map", "clear", 0): _CLEAR,
    ("value", "update", 1): f"if first is None:\n    {_CLEAR}\nelse:\n    table[key] = first",
    ("list", "add", 1): (
        "held = table.get(key)\n"
        "if held is None:\n    table[key] = [first]\nelse:\n    held.append(first)"
    ),
    ("list", "update", 1): f"table[key] = list(first)\nif not table[key]:\n    {_CLEAR}",
    ("map", "put", 2): (
        "held = table.get(key)\n"
        "if held is None:\n    table[key] = {first: second}\nelse:\n    held[first] = second"
    ),
    ("map", "remove", 1): (
        "held = table.get(key)\n"
        f"if held is not None:\n    held.pop(first, None)\n    if not held:\n        {_CLEAR}"
    ),
}
"""What the methods of hash_map_states do, by kind, method and number of arguments."""

_AS_HELD = (
    ("held = table.get(key)\n", ""),
    ("table.get(key)", "held"),
    ("table.get(key, ", "(held or "),
    (_CLEAR, "held = None"),
    ("key not in table", "held is None"),
    ("key in table", "held is not None"),
    ("table[key]", "held"),
)
"""How the texts change if the entry of the key is in the variable `held`."""
_STORE = "if held is not None:\n    table[key] = held"
_TAKE = f"held = {_CLEAR}"

_WRITES = ("update", "add", "put")
_TIMERS = {"register_event_time_timer": "add", "delete_event_time_timer": "discard"}

_NEVER_NONE = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.JoinedStr, ast.Compare)
_METHODS = frozenset(
    {
        *("add", "append", "copy", "count", "discard", "endswith", "extend", "format", "get"),
        *("index", "insert", "items", "join", "keys", "lower", "pop", "replace", "setdefault"),
        *("sort", "split", "startswith", "strip", "update", "upper", "values"),
    }
)
"""Methods of containers and texts: they don't ask for the current key."""


def inline_state(form: Form) -> None:
    """Rewrites the functions over batches of keyed process functions, and of rich functions on keyed streams."""
    for function in form.batch_functions():
        loops = [item for item in function.body if isinstance(item, ast.For)]
        if function.kind in ("process", "fire") and len(loops) == 1:
            _States(form, function, loops[0]).run()


def every_table_is_guarded(form: Form) -> None:
    """A function that reads a state's table has a guard that the table exists, and a fallback."""
    for function in form.functions:
        guarded = {
            node.target.id
            for guard in function.guards
            for node in ast.walk(guard)
            if isinstance(node, ast.NamedExpr)
        }
        for name in f.names_in(function.body):
            if f"{name}_found" in form.names.bindings:
                assert name in guarded, f"{function.name}: {name}"
                assert function.fallback is not None, function.name


class _States:
    def __init__(self, form: Form, function: Function, loop: ast.For) -> None:
        self.form = form
        self.function = function
        self.loop = loop
        self.is_of_timers = function.kind == "fire"

    def run(self) -> None:
        """Finds the statement that sets the key, and rewrites the statements after it."""
        for position, statement in enumerate(self.loop.body):
            called = statement.value if isinstance(statement, ast.Expr) else None
            if (
                isinstance(called, ast.Call)
                and isinstance(called.func, ast.Name)
                and stem(called.func.id) in SETS_KEY
                and isinstance(called.args[0], ast.Name)
            ):
                self._rewrite(position, called.args[0].id)
                return

    def _rewrite(self, position: int, key: str) -> None:
        set_key, rest = self.loop.body[position], self.loop.body[position + 1 :]
        index = f.operator_of(set_key)
        owner, context = f"self_{index}", f"context_{index}"
        states = {
            name: state
            for name, state in _states(self.form.program.operators[index].spec).items()
            if _is_only_called(self.loop.body, owner, name)
        }
        used = [name for name in states if any(_calls(rest, owner, name))]
        if not used:
            return
        plain = copy.deepcopy(self.function)
        plain.name = f"calls_{self.function.suffix}"
        types = types_of(self.function, self.form)
        before, state_key, key_read = self._state_key(index, key, types, rest)
        if before:
            select = self.form.names.bind(f"set_state_key_{index}", "set_state_key", index)
            (set_key,) = f.statements(f"{select}({state_key})", index)
        is_batch = self.form.program.is_batch
        lookups = []
        for name in used:
            table = f"table_{index}_{name}"
            kind, declared, items = states[name]
            found = self.form.names.bind(
                f"{table}_found",
                *("state_table", index, name, kind, declared, is_batch),
            )
            self.function.guards.insert(0, f.expression(f"({table} := {found}()) is not None"))
            held = f"held_{index}_{name}"
            lookups.append(_LookUps(self.form, owner, name, kind, items, table, state_key, held))

        def looked_up(*, is_held: bool) -> Lines:
            block = f.copied(rest)
            for each in lookups:
                block = each.block(block, types, is_held=is_held)
            return self._without_context(block, index, state_key, types, key_read)

        if is_batch:
            block = self._key_by_key(set_key, state_key, lookups, looked_up)
        else:
            self._touch(index, position, key)
            block = looked_up(is_held=False)
            block = _with_key(block, set_key, _handles(block, {owner, context}))
            if block[0] is not set_key:
                self._set_last_key(set_key, key)
        self.loop.body = [*self.loop.body[:position], *before, *block]
        self.function.fallback = plain.name
        self.form.functions.insert(self.form.functions.index(self.function) + 1, plain)
        self.form.remark(index, f"looks up in tables: {', '.join(map(repr, sorted(used)))}")

    def _key_by_key(
        self,
        set_key: ast.stmt,
        key: str,
        lookups: list[_LookUps],
        looked_up: Callable[..., Lines],
    ) -> Lines:
        """The block for batch mode, where the records of a key follow each other.

        Where the next key is set, the timers of the previous one fire, and its state is dropped. The states of a key are
        in variables, unless two inputs take turns, or unknown code may look for the states. Then the key is not set if the
        function has no timers.
        """
        index = f.operator_of(set_key)
        block = looked_up(is_held=True)
        handles = _handles(block, {f"self_{index}", f"context_{index}"})
        is_seen = any(_reads_key(item, index, handles) for item in block)
        if index or self.form.takes_turns or is_seen:
            backend = self.form.names.bind(f"backend_{index}", "keyed_state", index)
            last: ast.expr = ast.Attribute(f.name(backend), "state_key", ast.Load())
            last.is_field = True  # type: ignore[attr-defined]
            lookups, variables = [], []
            block = looked_up(is_held=False)
        else:
            last = f.name(f"last_key_{index}")
            self._tables_differ(lookups)
            variables = [last.id, *(each.held for each in lookups)]
            self.function.before += f.statements(" = ".join([*variables, "None"]), NO_OPERATOR)
        store = [line for each in lookups for line in each.lines(_STORE, index, key=last)]
        take = [line for each in lookups for line in each.lines(_TAKE, index)]
        at_change = [*store, set_key]
        spec: Any = self.form.program.operators[index].spec
        if lookups and not has_on_timer(spec.function):
            unset = f.copied(block)
            for call in _calls_in(unset):
                call.has_key = False  # type: ignore[attr-defined]
            unset = _with_key(unset, set_key, handles)
            if unset[0] is not set_key:
                block, at_change = unset, []
                self._set_last_key(set_key, key)
        if lookups:
            at_change += [*f.statements(f"{variables[0]} = {key}", index), *take]
        self.function.after += f.copied(store)
        (change,) = f.statements(f"if {key} != last:\n    pass", index, last=last)
        change.body = at_change  # type: ignore[attr-defined]
        return [change, *block]

    def _tables_differ(self, lookups: list[_LookUps]) -> None:
        """Has the fallback process batches if two attributes hold one state, whose entry would be in two variables."""
        for each, other in combinations(lookups, 2):
            if each.kind == other.kind:
                self.function.guards.append(f.expression(f"{each.table} is not {other.table}"))

    def _state_key(
        self, index: int, key: str, types: dict[str, Any], block: Lines
    ) -> tuple[Lines, str, str]:
        """The variables of the state key, which tables use, and of the current key, after lines that set them.

        The current key is set only if the block reads it.
        """
        program, names = key_program(self.form, index), self.form.names
        if program is not None and types.get(key) in key_identity(program.hasher).plain:
            return [], key, key
        unusual = fields_looked_at(self.form, index, key, types.get(key))
        if unusual is None:
            plain = names.bind(f"plain_keys_{index}", "plain_keys", index)
            unusual = f"{key}.__class__ not in {plain}"
        kept, current = f"state_key_{index}", f"current_key_{index}"
        if self.is_of_timers:
            kept, text = key, f"{key}\nif {unusual}:"
        else:
            identify = names.bind(f"identify_{index}", "identify", index)
            text = f"{kept} = {key}\nif {unusual}:\n    {kept} = {identify}({key})"
        if any(text_of(node) == _current_key(index) for node in _calls_in(block)):
            names.bind("key_of", "shared")
            text = f"{current} = {text}\n    {current} = key_of({kept})"
        elif self.is_of_timers:
            return [], kept, kept
        return f.statements(text, index), kept, current

    def _without_context(
        self,
        block: Lines,
        index: int,
        key: str,
        types: dict[str, Any],
        current_key: str,
    ) -> Lines:
        """A block without those calls of the context whose result is a variable, such as `current_key`.

        `ctx.timestamp()` becomes the record's time, `ctx.get_current_key()` the key, and a variable for
        `ctx.timer_service()` becomes that call.
        The context gets the time of the record only if the block reads it.
        """
        context = f"context_{index}"
        sets_time = next(
            (item for item in block if text_of(item).startswith(f"{context}._timestamp = ")),
            None,
        )
        time: ast.expr = f.name("NO_TIMESTAMP")
        if isinstance(sets_time, ast.Assign) and type_of(sets_time.value, types) is int:
            time = sets_time.value
        elif isinstance(sets_time, ast.Assign):
            time = f.expression("NO_TIMESTAMP if time is None else time", time=sets_time.value)
        self.form.names.bind("NO_TIMESTAMP", "shared")
        parts = {_current_key(index): f.name(current_key), f"{context}.timestamp()": time}
        service, stores = f"{context}.timer_service()", f.stores(block)
        named = [
            item
            for item in f.all_statements(block)
            if isinstance(item, ast.Assign)
            and text_of(item.value) == service
            and all(stores.get(text_of(target)) == 1 for target in item.targets)
        ]
        for item in named:
            parts |= {text_of(target): item.value for target in item.targets}
        known = f.EqualExpressions(parts)
        block = f.rewritten(block, lambda item: [] if item in named else None)
        block = [known.visit(item) for item in block]
        block = f.rewritten(block, lambda item: self._timer(item, index, key, types))
        is_asked = sum(f.reads(item, context) for item in block if item is not sets_time)
        return block if is_asked else [item for item in block if item is not sets_time]

    def _timer(
        self, statement: ast.stmt, index: int, key: str, types: dict[str, Any]
    ) -> Lines | None:
        """Code that registers or deletes an event-time timer without a call of the timer service."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            return None
        method = _TIMERS.get(call.func.attr)
        is_service = text_of(call.func.value) == f"context_{index}.timer_service()"
        if method is None or not is_service or len(call.args) != 1 or call.keywords:
            return None
        (time,) = call.args
        if isinstance(time, ast.Starred):
            return None
        timers = self.form.names.bind(f"event_timers_{index}", "event_timers", index)
        called = f"{method}_timer_{index}"
        found = f.statements(f"{called} = {timers}().{method}", NO_OPERATOR)
        if text_of(found[0]) not in map(text_of, self.function.before):
            self.function.before += found
        self.form.names.bind("VOID", "shared")
        lines: Lines = []
        operator = f.operator_of(statement)
        text = "time"
        if type_of(time, types) is not int:
            self.form.names.bind("timer_millis", "shared")
            text = "time if time.__class__ is int else timer_millis(time)"
            if not isinstance(time, ast.Name):
                lines.append(f.let(f"due_{index}", time, operator))
                time = f.name(f"due_{index}")
        lines += f.statements(f"{called}({text}, VOID, {key})", operator, time=time)
        return f.with_comment(f.placed(lines, call), f.comment_of(statement))

    def _touch(self, index: int, position: int, key: str) -> None:
        """Passes all keys of a batch to the backend, if it tracks changes, or refuses the batch if this is expensive.

        This happens before the batch, because a function may change its record. The keys of timers are passed one by
        one.
        """
        tracks = self.form.names.bind(f"tracks_{index}", "tracks_changes", index)
        if self.is_of_timers:
            touching = self.form.names.bind(f"touching_{index}", "touching", index)
            text = f"if {tracks}():\n    due = {touching}(due)"
            self.function.before += f.statements(text, index)
            return
        keys = self._keys_of_batch(position, key)
        if keys is None:
            self.function.guards.insert(0, f.expression(f"not {tracks}()"))
            return
        touch = self.form.names.bind(f"touch_{index}", "touch", index)
        text = f"if {tracks}():\n    {touch}(keys)"
        self.function.before += f.statements(text, index, keys=keys)

    def _keys_of_batch(self, position: int, key: str) -> ast.expr | None:
        """A list of all keys. None if selecting keys again is expensive."""
        selected: ast.expr = f.name(key)
        for statement in reversed(self.loop.body[:position]):
            if isinstance(statement, f.Count):
                continue
            variable = f.variable_set(statement)
            if not variable:
                return None
            selected = f.replaced(selected, {variable: statement.value})  # type: ignore[attr-defined]
        set_in_loop = {*f.stores([ast.Expr(self.loop.target)])}
        if not only_reads(selected) or not (
            f.names_in([selected]) - set_in_loop <= f.names_in([self.loop.iter])
        ):
            return None
        return ast.ListComp(
            selected, [ast.comprehension(self.loop.target, self.loop.iter, [], is_async=0)]
        )

    def _set_last_key(self, set_key: ast.stmt, key: str) -> None:
        """Sets the current key after the last record or timer."""
        was_set = "values"
        if self.is_of_timers:
            self.form.names.bind("ABSENT", "shared")
            self.function.before += f.statements(f"{key} = ABSENT", NO_OPERATOR)
            was_set = f"{key} is not ABSENT"
        text = f"if {was_set}:\n    {text_of(set_key)}"
        self.function.after += f.statements(text, NO_OPERATOR)


def _current_key(index: int) -> str:
    return f"context_{index}.get_current_key()"


def _states(spec: object) -> dict[str, _State]:
    """The states that `open` gets, each by one assignment."""
    function = getattr(spec, "function", None)
    kind: Any = type(function)
    if function is None:
        return {}
    found: dict[str, list[_State | None]] = {}
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


def _opening(kind: type) -> Iterator[Definition]:
    """The method `open` of a class, and those of its base classes that are called by `super().open(context)`."""
    for method in (vars(base)["open"] for base in kind.__mro__ if "open" in vars(base)):
        try:
            definition = definition_of(method)
        except Refused:
            return
        yield definition
        context = (*definition.parameters, "", "")[1]
        if f"super().open({context})" not in map(text_of, definition.body):
            return


def _state(value: ast.expr, context: str, definition: Definition) -> _State | None:
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
    return kind, checked_type(declared), tuple(types)


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


def _is_only_called(block: Lines, owner: str, name: str) -> bool:
    """Whether an attribute is read for its methods only, and never set."""
    reads = [
        node
        for node in f.nodes(block)
        if isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.value, ast.Name)
        and node.value.id == owner
    ]
    return len(reads) == len(list(_calls(block, owner, name)))


def _calls_in(block: Lines) -> Iterator[ast.Call]:
    return (node for node in f.nodes(block) if isinstance(node, ast.Call))


def _calls(block: Lines, owner: str, name: str) -> list[ast.Call]:
    return [node for node in _calls_in(block) if _method(node, owner, name)]


def _method(call: ast.Call, owner: str, name: str) -> str:
    """The method of `owner.name` that is called."""
    called = call.func
    if (
        isinstance(called, ast.Attribute)
        and isinstance(called.value, ast.Attribute)
        and called.value.attr == name
        and isinstance(called.value.value, ast.Name)
        and called.value.value.id == owner
        and not call.keywords
    ):
        return called.attr
    return ""


class _LookUps(ast.NodeTransformer):
    """Replaces the calls of one state's methods."""

    def __init__(
        self,
        form: Form,
        owner: str,
        name: str,
        kind: str,
        items: tuple[TypeInformation[Any], ...],
        table: str,
        key: str,
        held: str,
    ) -> None:
        self._form = form
        self._owner = owner
        self._name = name
        self.kind = kind
        self.table = table
        self._items = items
        self.held = held
        self._is_held = False
        self._parts: dict[str, ast.expr] = {
            "table": f.name(table),
            "key": f.name(key),
            "held": f.name(held),
        }

    def lines(self, text: str, operator: int, **parts: ast.expr) -> Lines:
        """Statements with this state's table, key and variable."""
        return f.statements(text, operator, **(self._parts | parts))

    def block(self, block: Lines, types: dict[str, Any], *, is_held: bool) -> Lines:
        """The block with statements and expressions replaced."""
        self._is_held = is_held
        done = f.rewritten(block, lambda statement: self._statement(statement, types))
        return [self.visit(statement) for statement in done]

    def _statement(self, statement: ast.stmt, types: dict[str, Any]) -> Lines | None:
        call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
        method = _method(call, self._owner, self._name) if isinstance(call, ast.Call) else ""
        if not method:
            return None
        assert isinstance(call, ast.Call)
        if isinstance(statement, ast.Assign):
            return self._with_arguments_before(statement, call)
        text = _STATEMENTS.get((self.kind, method, len(call.args)))
        if text is None or any(isinstance(item, ast.Starred) for item in call.args):
            return None
        operator = f.operator_of(statement)
        tests = self._tests(method, call.args, types)
        if tests is None:
            return None
        is_one_value = method == "update" and self.kind == "value"
        if is_one_value and (self._is_held or tests or _is_never_none(call.args[0], types)):
            text = "table[key] = first"
        lines: Lines = []
        parts = dict(self._parts)
        is_used_once = text == "table[key] = first" and not any(tests)
        sets_variable = any(isinstance(node, ast.NamedExpr) for node in ast.walk(call))
        for position, (part, argument) in enumerate(zip(("first", "second"), call.args)):  # noqa: B905 - two at most
            if not is_used_once and (sets_variable or not _is_simple(argument)):
                variable = f"{self.held}_{part}"
                lines.append(f.let(variable, argument, operator))
                call.args[position] = f.name(variable)
            parts[part] = call.args[position]
        stored = f.statements(self._text(text), operator, **parts)
        condition = " and ".join(filter(None, tests))
        if condition:
            is_right = f.expression(condition, **parts)
            called = self._called(call, operator, replaces_entry=is_one_value)
            stored = f.marked([ast.If(is_right, stored, called)], operator)
        return f.with_comment(f.placed([*lines, *stored], call), f.comment_of(statement))

    def _called(self, call: ast.Call, operator: int, *, replaces_entry: bool) -> Lines:
        """The call of the state itself. Then the entry is read from the table again, even if the state refused the value."""
        call.is_state = call.func.is_field = True  # type: ignore[attr-defined]
        if not self._is_held:
            return [ast.Expr(call)]
        call.has_key = True  # type: ignore[attr-defined]
        take = self.lines(_TAKE, operator)
        if replaces_entry:
            return [ast.Expr(call), *take]
        return [*self.lines(_STORE, operator), ast.Try([ast.Expr(call)], [], [], take)]

    def _tests(
        self, method: str, arguments: list[ast.expr], types: dict[str, Any]
    ) -> list[str] | None:
        """Expressions that check whether the written values, `first` and `second`, have the declared type.

        An expression is empty if the type of its value is known. The list is empty if the state takes any value. None
        for updates of whole lists, which keep their calls.
        """
        if method not in _WRITES or not self._items:
            return []
        tests = [
            form_test(declared, part, plain_type(type_of(argument, types)))
            for declared, part, argument in zip(self._items, ("first", "second"), arguments)  # noqa: B905 - two at most
        ]
        if all(coder_converter(item) is None for item in self._items):
            return []
        if (self.kind, method) == ("list", "update"):
            return None
        return [
            self._fits(declared, part) if test is None else test
            for declared, part, test in zip(self._items, ("first", "second"), tests)  # noqa: B905 - two at most
        ]

    def _fits(self, declared: TypeInformation[Any], part: str) -> str:
        """A call that says whether a value can be converted to a type without a short test."""
        index = self._owner.rpartition("_")[2]
        fits = self._form.names.bind(f"fits_{index}_{self._name}_{part}", "fits", declared)
        return f"{fits}({part})"

    def _with_arguments_before(self, statement: ast.Assign, call: ast.Call) -> Lines:
        """Assigns arguments such as `f(y)` in `x = state.get(f(y))` to variables before the look-up."""
        lines: Lines = []
        for position, argument in enumerate(call.args):
            if not _is_simple(argument) and not isinstance(argument, ast.Starred):
                variable = f"{self.held}_argument"
                lines.append(f.let(variable, argument, f.operator_of(statement)))
                call.args[position] = f.name(variable)
        return [*f.with_comment(lines, f.comment_of(statement)), statement]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        method = _method(node, self._owner, self._name)
        text = _EXPRESSIONS.get((self.kind, method, len(node.args)))
        if text is None or not all(map(_is_simple, node.args)):
            return node
        first = dict(zip(("first",), node.args, strict=False))
        return f.placed(f.expression(self._text(text), **self._parts, **first), node)

    def _text(self, text: str) -> str:
        """The text of a method, adapted if the entry of the key is in a variable."""
        for part, held in _AS_HELD if self._is_held else ():
            text = text.replace(part, held)
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


def _handles(block: Lines, handles: set[str]) -> set[str]:
    """Variables that may refer to the function, its context, or objects that it got from these."""
    for statement in f.all_statements(block):
        if isinstance(statement, ast.Assign) and any(
            f.reads(statement.value, name) for name in handles
        ):
            handles = handles | set(f.stores([statement]))
    return handles


def _with_key(block: Lines, set_key: ast.stmt, handles: set[str]) -> Lines:
    """A block that sets the current key before code that may read it: at its start, or in branches."""
    operator = f.operator_of(set_key)
    readers = [item for item in block if _reads_key(item, operator, handles)]
    if not all(
        isinstance(item, ast.If) and not _reads_key_itself(item, handles) for item in readers
    ):
        return [set_key, *block]
    for item in readers:
        for inner in f.blocks(item):
            inner[:] = _with_key(inner, f.copied(set_key), handles)
    return block


def _reads_key(statement: ast.stmt, operator: int, handles: set[str]) -> bool:
    """Whether a statement, or a statement inside it, may read the current key of the operator."""
    return any(
        _reads_key_itself(item, handles)
        for item in f.all_statements([statement])
        if f.operator_of(item) == operator
    )


def _reads_key_itself(statement: ast.stmt, handles: set[str]) -> bool:
    """Whether an expression of a statement calls unknown code, or passes a handle to other code."""
    parts = [node for part in f.own_expressions(statement) for node in ast.walk(part)]
    called_by_syntax = [item for node in (statement, *parts) for item in _called_by_syntax(node)]
    if any(f.reads(item, name) for item in called_by_syntax for name in handles):
        return True
    for call in parts:
        if not isinstance(call, ast.Call) or getattr(call, "has_key", False):
            continue
        called = call.func
        if any(f.reads(call, name) for name in handles):
            return True
        if getattr(call, "is_fresh", False):
            continue  # it only makes a record
        if isinstance(called, ast.Name):
            is_builtin = called.id == "iter" or calls_builtin(call)
            if not is_builtin and not has(called.id, Trait.NEEDS_NO_KEY):
                return True
        elif not (isinstance(called, ast.Attribute) and called.attr in _METHODS):
            return True
    return False


def _called_by_syntax(node: ast.AST) -> list[ast.expr]:
    """Objects whose methods a node calls: the MapState in `state[key]`, `key in state` or `for key in state`."""
    match node:
        case ast.Subscript(value=value) | ast.Starred(value=value):
            return [value]
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=value):
            return [value]
        case ast.For(iter=iterated) | ast.comprehension(iter=iterated):
            return [iterated]
        case ast.Compare(ops=ops, comparators=comparators):
            tests = zip(ops, comparators, strict=True)
            return [item for test, item in tests if isinstance(test, (ast.In, ast.NotIn))]
    return []
