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

The rule applies to all kinds of keyed state that `open` gets from its context. At the start of a batch, the code checks
once whether each state is a plain dictionary in memory, with or without a time to live, as the compiler has seen it. If not, a
copy of the function that calls the state objects processes the batch. The current key is set only before code that may read it. If changes of
state are tracked, the backend gets all keys of a batch before the batch runs.

A state with a time to live has a time beside each content. The code reads the clock for each access, as the state does. It
calls the state to read a list or a whole map, if an entry is expired, or if reads renew entries:

    held_0_last[1] if (now_0_last := accessed_0_last()) < (held_0_last := table_0_last.get(field_0, NOTHING))[0]
    + unchanged_ms_0_last else read_0_last(field_0, now_0_last)[1]

The function of a reducing or aggregating state is inlined if it only refers to its parameters and to builtins. At the
start of a batch, the code checks that the state has this function. Other functions of states are called:

    held_0_sum = table_0_sum.get(field_0)
    if held_0_sum is None:
        table_0_sum[field_0] = field_1
    else:
        new_0_sum = held_0_sum + field_1
        table_0_sum[field_0] = new_0_sum

If such a state has a time to live, all its methods are called.

In batch mode, the records of a key follow each other. The key is set when it changes. The entries of a key are in
variables until the next key, if only this code can see them and they do not expire:

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

A function that reads neither state nor timers nor the key has its key set after the batch only.

The code of `on_timer` is rewritten in the same way, except in batch mode, where it runs once for each key. The timer has
the key of the table, and the backend gets the keys of timers one by one.

A state refuses values that are not of its declared type. A short test checks the type of a value. If the value passes, the
code stores it in the dictionary, otherwise it calls the state. For types without a short test, such as a Row, the test is a
call. The elements of a whole list are also tested by a call.
"""

from __future__ import annotations

import ast
from itertools import combinations
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import only_reads, types_of
from opchain.compiler.codegen.internal_functions import SETS_KEY
from opchain.compiler.codegen.keys import fields_looked_at, key_program
from opchain.compiler.codegen.names import stem
from opchain.compiler.codegen.rules.inline_functions import inline_calls
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.state_access.as_calls import as_calls
from opchain.compiler.codegen.state_access.current_key import (
    calls_hidden_code,
    handles_in,
    reads_key,
    with_key,
)
from opchain.compiler.codegen.state_access.declared_states import declared_states
from opchain.compiler.codegen.state_access.look_ups import (
    STORE,
    TAKE,
    LookUps,
    calls_in,
    is_only_called,
    state_calls,
)
from opchain.compiler.codegen.static_types import type_of
from opchain.runtime.functions.process_functions import has_on_timer
from opchain.runtime.program.vertex_program import NO_OPERATOR
from opchain.runtime.state.keys.key_identity import key_identity
from opchain.runtime.task.generated_code import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.codegen.state_access.declared_states import DeclaredState


_TIMERS = {"register_event_time_timer": "add", "delete_event_time_timer": "discard"}


def inline_state(form: f.Form) -> None:
    """Rewrites the functions over batches of keyed process functions, and of rich functions on keyed streams."""
    for function in form.batch_functions():
        loops = [item for item in function.body if isinstance(item, ast.For)]
        if function.kind in ("process", "fire") and len(loops) == 1:
            _States(form, function, loops[0]).run()


def every_table_is_guarded(form: f.Form) -> None:
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
    def __init__(self, form: f.Form, function: f.Function, loop: ast.For) -> None:
        self.form = form
        self.function = function
        self.loop = loop
        self.is_of_timers = function.kind == "fire"

    def run(self) -> None:
        """Finds the statement that sets the key, and rewrites the statements after it."""
        for position, statement in enumerate(self.loop.body):
            match statement:
                case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[ast.Name(id=key)])):
                    if stem(name) in SETS_KEY:
                        self._rewrite(position, key)
                        return

    def _rewrite(self, position: int, key: str) -> None:
        index = notes.operator(self.loop.body[position])
        owner, context = f"self_{index}", f"context_{index}"
        body, states = self._states_called(position, owner)
        if not states:
            self._leave_key(position, key)
            return
        plain = self.function.copy()
        self.loop.body = body
        set_key, rest = body[position], body[position + 1 :]
        types = types_of(self.function, self.form)
        before, state_key, key_read = self._state_key(index, key, types, rest)
        if before:
            select = self.form.names.bind(f"set_state_key_{index}", "set_state_key", index)
            (set_key,) = f.statements(f"{select}({state_key})", index)
        is_batch = self.form.program.is_batch
        lookups: list[LookUps] = []
        callees: dict[str, f.Callee] = {}
        for name, state in states.items():
            table = f"table_{index}_{name}"
            found = self.form.names.bind(
                f"{table}_found",
                *("state_table", index, name, state.kind, state.declared, is_batch),
                tuple((part, digest_of(inlined)) for part, inlined in state.self_contained()),
            )
            self.function.guards.insert(0, f.expression(f"({table} := {found}()) is not None"))
            held = f"held_{index}_{name}"
            lookups.append(LookUps(self.form, owner, name, state, table, state_key, held))
            callees |= lookups[-1].callees(index)
            self.function.before += lookups[-1].prepared(index)

        def looked_up(*, is_held: bool) -> f.Lines:
            block = f.copied(rest)
            for each in lookups:
                block = each.block(block, types, is_held=is_held)
            block = inline_calls(self.form, self.function, callees, block)
            return self._without_context(block, index, state_key, types, key_read)

        if is_batch:
            block = self._key_by_key(set_key, state_key, lookups, looked_up)
        else:
            self._touch(index, position, key)
            block = looked_up(is_held=False)
            handles = handles_in(block, {owner, context})
            if self._calls_hidden_code(block, index, handles):
                block = [set_key, *block]
            else:
                block = with_key(block, set_key, handles)
            if block[0] is not set_key:
                self._set_last_key(set_key, key)
        self.loop.body = [*self.loop.body[:position], *before, *block]
        self.function.before += f.flattened(each.functions(block, index) for each in lookups)
        f.insert_fallback(self.form, self.function, plain, "calls")
        self.form.remark(index, f"looks up in tables: {', '.join(map(repr, sorted(states)))}")

    def _leave_key(self, position: int, key: str) -> None:
        """Sets the key after the last record only, if no code of the function can read the key, its state or its timers.

        In batch mode, the previous key may have to end where the next key is set.
        """
        set_key, rest = self.loop.body[position], self.loop.body[position + 1 :]
        index = notes.operator(set_key)
        spec: Any = self.form.program.operators[index].spec
        ends_key = self.form.program.is_batch and (
            index or self.form.takes_turns or has_on_timer(spec.function)
        )
        if not (self.is_of_timers or ends_key or self._is_key_read(rest, index)):
            self.loop.body = [*self.loop.body[:position], *rest]
            self._set_last_key(set_key, key)

    def _states_called(self, position: int, owner: str) -> tuple[f.Lines, dict[str, DeclaredState]]:
        """The states that the code after the key is set only calls, and the loop's body with these calls."""
        body, found = self.loop.body, {}
        spec = self.form.program.operators[notes.operator(body[position])].spec
        for name, state in declared_states(spec).items():
            called = as_calls(f.copied(body), f"{owner}.{name}", state.kind)
            is_used = any(state_calls(called[position + 1 :], owner, name))
            if is_used and is_only_called(called, owner, name):
                body, found[name] = called, state
        return body, found

    def _key_by_key(
        self, set_key: ast.stmt, key: str, lookups: list[LookUps], looked_up: Callable[..., f.Lines]
    ) -> f.Lines:
        """The block for batch mode, where the records of a key follow each other.

        Where the next key is set, the timers of the previous one fire, and its state is dropped. The states of a key are
        in variables, unless two inputs take turns, or unknown code may look for the states. Then the key is not set if the
        function has no timers.
        """
        index = notes.operator(set_key)
        block = looked_up(is_held=True)
        handles = handles_in(block, {f"self_{index}", f"context_{index}"})
        expires = any(each.expires for each in lookups)
        if index or self.form.takes_turns or self._is_key_read(block, index) or expires:
            backend = self.form.names.bind(f"backend_{index}", "keyed_state", index)
            last: ast.expr = ast.Attribute(f.name(backend), "state_key", ast.Load())
            notes.is_field.set(last, True)
            lookups, variables = [], []
            block = looked_up(is_held=False)
        else:
            last = f.name(f"last_key_{index}")
            self._tables_differ(lookups)
            variables = [last.id, *(each.held for each in lookups)]
            self.function.before += f.statements(" = ".join([*variables, "None"]), NO_OPERATOR)
        store = [line for each in lookups for line in each.lines(STORE, index, key=last)]
        take = [line for each in lookups for line in each.lines(TAKE, index)]
        at_change = [*store, set_key]
        spec: Any = self.form.program.operators[index].spec
        if lookups and not has_on_timer(spec.function):
            unset = f.copied(block)
            for call in calls_in(unset):
                notes.has_key.set(call, False)
            unset = with_key(unset, set_key, handles)
            if unset[0] is not set_key:
                block, at_change = unset, []
                self._set_last_key(set_key, key)
        if lookups:
            at_change += [*f.statements(f"{variables[0]} = {key}", index), *take]
        self.function.after += f.copied(store)
        (change,) = f.statements(f"if {key} != last:\n    pass", index, last=last)
        change.body = at_change  # type: ignore[attr-defined]
        return [change, *block]

    def _is_key_read(self, block: f.Lines, index: int) -> bool:
        handles = handles_in(block, {f"self_{index}", f"context_{index}"})
        return self._calls_hidden_code(block, index, handles) or any(
            reads_key(item, index, handles) for item in block
        )

    def _calls_hidden_code(self, block: f.Lines, index: int, handles: set[str]) -> bool:
        spec: Any = self.form.program.operators[index].spec
        return calls_hidden_code(block, type(spec.function), f"self_{index}", handles)

    def _tables_differ(self, lookups: list[LookUps]) -> None:
        """Has the fallback process batches if two attributes hold one state, whose entry would be in two variables."""
        for each, other in combinations(lookups, 2):
            if each.kind == other.kind:
                self.function.guards.append(f.expression(f"{each.table} is not {other.table}"))

    def _state_key(
        self, index: int, key: str, types: dict[str, Any], block: f.Lines
    ) -> tuple[f.Lines, str, str]:
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
        if any(text_of(node) == _current_key(index) for node in calls_in(block)):
            names.bind("key_of", "shared")
            text = f"{current} = {text}\n    {current} = key_of({kept})"
        elif self.is_of_timers:
            return [], kept, kept
        return f.statements(text, index), kept, current

    def _without_context(
        self, block: f.Lines, index: int, key: str, types: dict[str, Any], current_key: str
    ) -> f.Lines:
        """A block without those calls of the context whose result is a variable, such as `current_key`.

        `ctx.timestamp()` becomes the record's time, `ctx.get_current_key()` the key, and a variable for
        `ctx.timer_service()` becomes that call.
        The context gets the time of the record only if the block reads it.
        """
        context = f"context_{index}"
        sets_time = next(
            (item for item in block if text_of(item).startswith(f"{context}._timestamp = ")), None
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
        block = f.rewritten(block, lambda item: [] if item in named else None)
        block = f.equal_replaced(block, parts)
        block = f.rewritten(block, lambda item: self._timer(item, index, key, types))
        is_asked = sum(f.reads(item, context) for item in block if item is not sets_time)
        return block if is_asked else [item for item in block if item is not sets_time]

    def _timer(
        self, statement: ast.stmt, index: int, key: str, types: dict[str, Any]
    ) -> f.Lines | None:
        """Code that registers or deletes an event-time timer without a call of the timer service."""
        match statement:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=service, attr=name), args=[time], keywords=[]
                ) as call
            ):
                method = _TIMERS.get(name)
                is_service = text_of(service) == f"context_{index}.timer_service()"
                if method is None or not is_service or isinstance(time, ast.Starred):
                    return None
            case _:
                return None
        timers = self.form.names.bind(f"event_timers_{index}", "event_timers", index)
        called = f"{method}_timer_{index}"
        found = f.statements(f"{called} = {timers}().{method}", NO_OPERATOR)
        if text_of(found[0]) not in map(text_of, self.function.before):
            self.function.before += found
        self.form.names.bind("VOID", "shared")
        lines: f.Lines = []
        operator = notes.operator(statement)
        text = "time"
        if type_of(time, types) is not int:
            self.form.names.bind("timer_millis", "shared")
            text = "time if time.__class__ is int else timer_millis(time)"
            if not isinstance(time, ast.Name):
                lines.append(f.let(f"due_{index}", time, operator))
                time = f.name(f"due_{index}")
        lines += f.statements(f"{called}({text}, VOID, {key})", operator, time=time)
        return f.with_comment(f.placed(lines, call), notes.comment(statement))

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
