"""Calls of the user's functions become their bodies.

>>> change("inline_functions", lambda numbers: numbers.map(lambda x: x % 7))
-   value_1 = map_1(value)
-   if value_1.__class__ not in IMMUTABLE:
-     value_1 = own_copy(value_1)
+   value_1 = value % 7

This applies to lambdas, functions, generators (the code that processes x replaces `yield x`), methods of function classes,
bound methods, class methods such as `Click.from_json`, methods and properties of records whose class is known
(inlining/record_calls.py), and the small functions that these call. The body replaces the call if:

- its source is the function's code (function_source.py);
- each of its names is a builtin, a constant that is sent with the function, or a global name or a variable of the
  enclosing function, which is looked up where the function runs. Otherwise the name is a local variable, which is always
  set before it is read;
- it creates no object that can outlive the call and still run code: no inner function, except a lambda that reads no
  local variable of the function, and no generator that is not read to its end at once;
- it only calls `collect` of a collector;
- it returns at its end or in branches of an `if`. A `return` in a loop or a `try` is allowed in the cases of inlining/returns.py.

A program may assign a global name again while a job runs. The generated function checks once, at the start of a batch,
that all of them refer to the same objects as before. If not, a function without inlining processes the batch.

Attributes that only `__init__` or the class sets (changing_attributes.py) are checked in the same way. Numbers and None
are constants in the body, and so are attributes with a string that is the key of a look-up.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.changing_attributes import changing_attributes
from opchain.compiler.codegen.displays import with_makers
from opchain.compiler.codegen.function_source import Definition, Refused, definition_of
from opchain.compiler.codegen.inlining.bodies import body_of, callee_of, folded
from opchain.compiler.codegen.inlining.emits import (
    MOST_COPIES,
    Places,
    each_yield,
    evaluated,
    is_iterable,
    with_appends,
    with_yields,
)
from opchain.compiler.codegen.inlining.hoisting import Hoisting
from opchain.compiler.codegen.inlining.record_calls import RecordCalls
from opchain.compiler.codegen.inlining.returns import (
    is_none,
    returns_within,
    structured,
    yields_behind_tries,
)
from opchain.compiler.codegen.inlining.scope import Scope
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.static_types import ColumnsOf
from opchain.runtime.functions.callables import takes_collector
from opchain.runtime.functions.function import may_use_state
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.program.vertex_program import FIRST_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable

    Give = Callable[[ast.expr], f.Lines]
    """What happens to the value that a function returns."""

_DEEPEST = 8


def inline_functions(form: f.Form) -> None:
    """Replaces calls by bodies wherever the result is the same."""
    for function in list(form.functions):
        inliner = _Inliner(form, function)
        plain = function.copy() if inliner.scope.can_watch else function
        function.body = inliner.block(function.body)
        for _ in range(_DEEPEST * inliner.scope.can_watch):
            calls = RecordCalls(form, function, inliner.scope.method_of_record)
            function.body = [calls.visit(statement) for statement in function.body]
            if not calls.found:
                break
            # An inlined method may call methods of the records that it makes.
            function.body = inliner.block(function.body)
        function.body = with_makers(form, function.body)
        window = _window_that_fires(form, function)
        if window:
            function.body = f.equal_replaced(function.body, window)
            function.body = f.rewritten(function.body, partial(_unused_key, form, function))
        if not inliner.scope.watched:
            continue
        arriving = function.types.get("values")
        lacks_fields = isinstance(arriving, ColumnsOf) and arriving.lacks_fields
        unchanged = form.names.bind(
            f"unchanged_{function.suffix}",
            *("unchanged", tuple(dict.fromkeys(inliner.scope.watched)), lacks_fields),
        )
        function.guards.append(f.expression(f"{unchanged}()"))
        if function.fallback is None:
            f.add_fallback(form, function, plain)


def inline_calls(
    form: f.Form, function: f.Function, callees: dict[str, f.Callee], block: f.Lines
) -> f.Lines:
    """A block with the bodies of some callees, which refer to no global names."""
    if not callees:
        return block
    inliner = _Inliner(replace(form, callees=callees), function)
    inliner.scope.can_watch = False
    return inliner.block(block)


def every_callee_is_bound(form: f.Form) -> None:
    """Every callee has a binding."""
    for name in form.callees:
        assert name in form.names.bindings, name


def _window_that_fires(form: f.Form, function: f.Function) -> dict[str, ast.expr]:
    """The call that gives the window, and its variable, in a function for windows that fire. Empty for other functions."""
    kind, _, index = function.name.rpartition("_")
    if kind != "fire" or not isinstance(form.program.operators[int(index)].spec, specs.WindowSpec):
        return {}
    return {f"context_{index}.window()": f.name("window")}


def _unused_key(form: f.Form, function: f.Function, statement: ast.stmt) -> f.Lines | None:
    """Removes the call that makes a key current, if no code can reach the key's state."""
    index = function.name.rpartition("_")[2]
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name == f"set_state_key_{index}":
            spec: Any = form.program.operators[int(index)].spec
            has_context = f"context_{index}" in f.names_in(function.body)
            is_used = has_context or may_use_state(spec.function) or may_use_state(spec.aggregate)
            return None if is_used else []
    return None


class _Inliner:
    def __init__(self, form: f.Form, function: f.Function) -> None:
        self.form = form
        self.scope = Scope(form, function)
        self._stack: list[Any] = []
        self._refused: list[ast.Call] = []
        self._is_expression = False
        """Whether a body must be one expression."""

    # Statements

    def block(self, block: f.Lines) -> f.Lines:
        return f.flattened(map(self._statement, block))

    def _statement(self, statement: ast.stmt) -> f.Lines:
        operator = notes.operator(statement)
        if isinstance(statement, f.ForEachResult):
            statement.body = self.block(statement.body)
            statement.by_tag = {
                tag: (variable, self.block(lines))
                for tag, (variable, lines) in statement.by_tag.items()
            }
        elif isinstance(statement, f.Fold) and self._fold(statement, operator):
            return [statement]
        found = self._inlined(statement, operator)
        if found is not None:
            return f.with_comment(found, notes.comment(statement))
        before: f.Lines = []
        if isinstance(statement, ast.If):
            before = self._condition(statement, operator)
        elif isinstance(statement, f.Send) and statement.key is not None:
            to = FIRST_OUTPUT - statement.number
            before, statement.key = self._computed("key", statement.key, to)
        hoisted = self._hoisted(statement, operator)
        if hoisted:
            before += f.with_comment(hoisted, notes.comment(statement))
            notes.comment.set(statement, None)
        for inner in f.blocks(statement):
            if not (isinstance(statement, f.ForEachResult) and inner is statement.body):
                inner[:] = self.block(inner)
        self._expressions(statement)
        return [*before, statement]

    def _condition(self, statement: ast.If, operator: int) -> f.Lines:
        """Inlines a function that decides, such as a filter. Returns its statements before the condition."""
        before, statement.test = self._computed("kept", statement.test, operator)
        if before:
            f.with_comment(before, notes.comment(statement))
            notes.comment.set(statement, None)
        return before

    def _computed(self, name: str, call: ast.expr, operator: int) -> tuple[f.Lines, ast.expr]:
        """The statements of a called function, and an expression for its value, if it is inlined. Else the call."""
        variable = self.scope.fresh(name, operator)
        found = self._attempt(call, operator, self._setting(variable, operator))
        if not found:
            return [], call
        last = found[-1]
        if isinstance(last, ast.Assign) and text_of(last.targets[0]) == variable:
            return found[:-1], last.value
        return found, f.name(variable)

    def _inlined(self, statement: ast.stmt, operator: int) -> f.Lines | None:
        """The statements that replace a statement with a call. None if the call stays."""
        if isinstance(statement, f.ForEachResult):
            return self._attempt(statement.iterable, operator, partial(self._emits, statement))
        if isinstance(statement, ast.Assign):
            body = partial(self._assigning, operator, statement.targets)
        elif isinstance(statement, ast.Expr):
            body = partial(self._returning, operator, evaluated)
        else:
            return None
        return self._attempt(statement.value, operator, body)

    def _assigning(
        self, operator: int, targets: list[ast.expr], definition: Definition, call: ast.Call
    ) -> f.Lines:
        """The statements of a function whose result is assigned.

        A `try` of the function must not catch what unpacking or storing the result raises, and its `finally` runs
        before the result is assigned.
        """
        tries = [item for item in f.all_statements(definition.body) if isinstance(item, ast.Try)]
        is_plain = all(isinstance(target, ast.Name) for target in targets)
        if not tries or (is_plain and not any(item.finalbody for item in tries)):
            return self._returning(operator, partial(_assigned, targets), definition, call)
        result = self.scope.fresh("result", operator)
        lines = self._setting(result, operator)(definition, call)
        return lines + _assigned(targets, f.name(result))

    def _fold(self, statement: f.Fold, operator: int) -> bool:
        """Inlines a reduce function: as an expression, or as statements that set the result."""
        result = statement.target.id if statement.target else self.scope.fresh("reduced", operator)
        body = self._attempt(statement.reduced, operator, self._setting(result, operator))
        if body is None:
            return False
        (only,) = body if len(body) == 1 else (None,)
        if isinstance(only, ast.Assign):
            statement.reduced = only.value
        else:
            statement.body, statement.reduced = body, None
            statement.target = f.target(result)
        return True

    def _is_ours(self, node: ast.expr) -> bool:
        return f.called(node) in self.form.callees

    def _attempt(
        self, call: ast.expr | None, operator: int, body: Callable[[Definition, ast.Call], f.Lines]
    ) -> f.Lines | None:
        """The replacement of a call. None for other expressions, and if the call stays, for which a remark is added."""
        if call is None or not self._is_ours(call):
            return None
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)
        callee = self.form.callees[call.func.id]
        try:
            with self.scope.attempt():
                definition = self._definition(callee)
                self._stack.append(callee.function)
                try:
                    lines = f.marked(body(definition, call), operator)
                    lines = self.block(lines)
                finally:
                    self._stack.pop()
        except Refused as refused:
            if not any(call is item for item in self._refused):  # else as an expression, too
                self._refused.append(call)
                if self.scope.function.kind != "fallback":  # it hardly ever runs
                    self.form.remark(operator, f"not inlined: {refused}")
            return None
        self.form.remark(operator, f"inlined: {definition.name}")
        return lines

    def _definition(self, callee: f.Callee) -> Definition:
        definition = definition_of(callee.function)
        if callee.function in self._stack or len(self._stack) >= _DEEPEST:
            raise Refused(f"{definition.name} calls itself; write it as a loop")
        return definition

    def _setting(self, variable: str, operator: int) -> Callable[[Definition, ast.Call], f.Lines]:
        """Returns the statements of a function that set a variable to its result."""
        return partial(self._returning, operator, partial(_assigned, [f.target(variable)]))

    def _returning(
        self, operator: int, give: Give, definition: Definition, call: ast.Call
    ) -> f.Lines:
        if definition.is_generator:
            raise Refused(f"{definition.name} is a generator; return one result")
        if _collects(callee_of(call, self.form)):
            raise Refused(f"{definition.name} takes a collector; return one result")
        body = body_of(definition, call, operator, self.scope)
        return structured(body, _value_given(give), definition)

    def _emits(self, statement: f.ForEachResult, definition: Definition, call: ast.Call) -> f.Lines:
        """The body of a function that emits, with the downstream code in place of each emitted record."""
        operator = notes.operator(statement)
        places = Places(
            self.scope, statement, is_nullable=statement.nullable and not definition.is_generator
        )
        loop_over = places.loop_over
        if _collects(callee_of(call, self.form)):
            return self._collected(definition, call, operator, loop_over)
        body = body_of(definition, call, operator, self.scope, is_iterated=True)
        if definition.is_generator:
            fresh = partial(self.scope.fresh, operator=operator)
            body = yields_behind_tries(body, fresh, definition)
            inner = each_yield(body)
            if inner is not None and is_iterable(inner):
                lines = loop_over(inner)
            else:
                lines = structured(
                    with_yields(body, places.emit, loop_over, definition),
                    _value_given(evaluated),
                    definition,
                )
        elif returns_within(body):
            result = self.scope.fresh("result", operator)
            give = partial(_assigned, [f.target(result)])
            lines = structured(body, _value_given(give), definition)
            lines += loop_over(f.name(result))
        else:
            emits_none = not statement.nullable
            lines = structured(
                body,
                lambda value: (
                    loop_over(value or ast.Constant(None))
                    if emits_none or not is_none(value)
                    else []
                ),
                definition,
            )
        size = sum(1 for _ in f.all_statements(statement.body))
        if max(0, places.count - 1) * size + places.copied > MOST_COPIES:
            raise Refused(
                f"{definition.name} emits at {places.count} places; collect the records in a list, and yield from it at one place"
            )
        return lines

    def _collected(
        self,
        definition: Definition,
        call: ast.Call,
        operator: int,
        loop_over: Callable[[ast.expr], f.Lines],
    ) -> f.Lines:
        """The body of a function with a collector, which is a list here. Its records are emitted at the end."""
        if definition.is_generator:
            raise Refused(f"{definition.name} yields and takes a collector; use one of them")
        records = self.scope.fresh("collected", operator)
        given = ast.Call(call.func, [*call.args, f.name(records)], call.keywords)
        body = with_appends(body_of(definition, given, operator, self.scope), records, definition)

        def give(value: ast.expr | None) -> f.Lines:
            if not is_none(value):
                raise Refused(
                    f"{definition.name} returns a value and takes a collector; collect the value"
                )
            return []

        made = f.let(records, ast.List([], ast.Load()), operator)
        (loop,) = loop_over(f.name(records))
        loop.nullable = False  # type: ignore[attr-defined]
        return [made, *structured(body, give, definition), loop]

    # Expressions

    def _expressions(self, statement: ast.stmt) -> None:
        operator = notes.operator(statement)
        if isinstance(statement, f.Send):
            number = statement.number
            if statement.key is not None:
                statement.key = self._expression(statement.key, FIRST_OUTPUT - number)
            return
        for name, value in ast.iter_fields(statement):
            if isinstance(value, ast.expr):
                setattr(statement, name, self._expression(value, operator))
            elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                setattr(statement, name, [self._expression(item, operator) for item in value])

    def _hoisted(self, statement: ast.stmt, operator: int) -> f.Lines:
        """The bodies of functions with several statements that an expression calls. They run before the statement."""
        if self._is_expression:
            return []

        def computed(node: ast.expr) -> tuple[f.Lines, ast.expr]:
            is_refused = any(node is call for call in self._refused)
            if is_refused or not self._is_ours(node) or self._returns_expression(node):
                return [], node
            return self._computed("result", node, operator)

        lines = Hoisting(self.scope, operator, computed, self._is_fixed).before(statement)
        return self.block(lines)

    def _returns_expression(self, call: ast.expr) -> bool:
        try:
            return definition_of(self.form.callees[f.called(call)].function).returned() is not None
        except Refused:
            return False

    def _is_fixed(self, called: ast.expr) -> bool:
        """Whether a name, or a method, is the same after the bodies of functions have run."""
        match called:
            case ast.Name() | ast.Attribute(value=ast.Constant()):
                return True
            case (
                ast.Attribute(value=ast.Name(id=name), attr=attribute)
                | ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr=attribute))
            ):
                return name in self.form.names.bindings and self._is_kept(name, attribute)
        return False

    def _is_kept(self, name: str, attribute: str) -> bool:
        """Whether no function sets an attribute of a function object, a module or a class while records are processed."""
        kinds = {type(each.instance) for each in self.form.callees.values() if each.owner == name}
        changing = [changing_attributes(kind, of_states=True) for kind in kinds]
        return all(names is not None and attribute not in names for names in changing)

    def _expression(self, node: ast.expr, operator: int) -> ast.expr:
        def change(item: ast.AST) -> ast.expr | None:
            is_own = isinstance(item, ast.Call) and self._is_ours(item)
            return self.call(item, operator) if is_own else None  # type: ignore[arg-type]

        return f.changed(node, change, inner_first=True)  # type: ignore[no-any-return]

    def call(self, call: ast.Call, operator: int) -> ast.expr:
        """The expression that a called function returns, if the function does nothing else; otherwise the call."""

        def body(definition: Definition, made: ast.Call) -> f.Lines:
            if definition.returned() is None:
                raise Refused(
                    f"{definition.name} has statements, and is called within an expression; give its "
                    "result a name first"
                )
            lines = body_of(definition, made, operator, self.scope)
            *lets, returned = lines
            assert isinstance(returned, ast.Return)
            assert returned.value is not None
            value = folded(lets, returned.value, self.form.names.bindings, self._is_fixed)
            if value is None:
                raise Refused(
                    f"{definition.name} is called within an expression, and does not read its arguments first and once; "
                    "give the result a name first"
                )
            return f.marked([ast.Expr(value)], operator)

        outer, self._is_expression = self._is_expression, True
        found = self._attempt(call, operator, body)
        self._is_expression = outer
        if found is None or len(found) != 1 or not isinstance(found[0], ast.Expr):
            return call
        return found[0].value


def _value_given(give: Give) -> Callable[[ast.expr | None], f.Lines]:
    """The code that processes a returned value, which is None if the function returns no value."""
    return lambda value: give(value or ast.Constant(None))


def _assigned(targets: list[ast.expr], value: ast.expr) -> f.Lines:
    """The statement that sets variables."""
    return [ast.Assign(f.copied(targets), value, lineno=0)]


def _collects(callee: f.Callee) -> bool:
    """Whether the last parameter of a method is a collector, which its caller does not pass."""
    method = getattr(callee.function, "__name__", "")
    return callee.instance is not None and takes_collector(callee.instance, method)
