"""Calls of the user's functions become their bodies.

>>> change("inline_functions", lambda numbers: numbers.map(lambda x: x % 7))
-   value_1 = map_1(value)
-   if value_1.__class__ not in IMMUTABLE:
-     value_1 = own_copy(value_1)
+   value_1 = value % 7

This applies to lambdas, functions, generators (the code that processes x replaces `yield x`), methods of function classes,
bound methods, class methods such as `Click.from_json`, methods and properties of records whose class is known
(record_calls.py), and the small functions that these call. The body replaces the call if:

- its source is the function's code (function_source.py);
- each of its names is a builtin, a constant that is sent with the function, or a global name, which is looked up where
  the function runs. Otherwise the name is a local variable, which is always set before it is read;
- it creates no object that can outlive the call and still run code: no inner function, and no generator that is not read
  to its end at once;
- it only calls `collect` of a collector;
- it returns at its end or in branches of an `if`. A `return` in a loop or a `try` is allowed in the cases of returns.py.

A program may assign a global name again while a job runs. The generated function checks once, at the start of a batch,
that all of them refer to the same objects as before. If not, a function without inlining processes the batch.

Attributes that only `__init__` or the class sets (changing_attributes.py) are checked in the same way. Numbers and None
are constants in the body, and so are attributes with a string that is the key of a look-up.
"""

from __future__ import annotations

import ast
import builtins
import copy
import dis
import inspect
from functools import lru_cache, partial
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.body_checks import (
    check_body,
    check_line,
    check_set_before_read,
    comprehended,
)
from opchain.compiler.codegen.changing_attributes import (
    changing_attributes,
    is_of_library,
    replaced_attributes,
)
from opchain.compiler.codegen.displays import Makers, class_name
from opchain.compiler.codegen.function_source import (
    Definition,
    Refused,
    definition_of,
    is_literal,
    is_written_exactly,
    meaning_of,
)
from opchain.compiler.codegen.names import readable, unused
from opchain.compiler.codegen.record_calls import RecordCalls
from opchain.compiler.codegen.returns import returns_within, structured, yields_behind_tries
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.static_types import ColumnsOf
from opchain.runtime.functions.callables import takes_collector
from opchain.runtime.functions.function import may_use_state
from opchain.runtime.operators.reduce import ABSENT
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.program.vertex_program import FIRST_OUTPUT
from opchain.runtime.task.generated_code import digest_of
from opchain.runtime.types.output_tag import OutputTag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opchain.compiler.codegen.form import Callee, Form, Function

    Lines = list[ast.stmt]
    Give = Callable[[ast.expr], Lines]
    """What happens to the value that a function returns."""

_PAIR = 2
_TAG = "OutputTag"
MOST_COPIES = 30
"""Statements downstream of an operator that emits at several places; with more it stays a call."""

_DEEPEST = 8
_WRITTEN = (int, float, bool, type(None))
"""The classes of constants that replace global names and attributes."""

_SEE_THEIR_CALLER = frozenset(
    {
        "locals",
        "globals",
        "vars",
        "dir",
        "eval",
        "exec",
        "super",
        "__import__",
        "breakpoint",
        "next",
    }
)


def inline_functions(form: Form) -> None:
    """Replaces calls by bodies wherever the result is the same."""
    for function in list(form.functions):
        inliner = _Inliner(form, function)
        plain = copy.deepcopy(function) if inliner.can_watch else function
        function.body = inliner.block(function.body)
        for _ in range(_DEEPEST * inliner.can_watch):
            calls = RecordCalls(form, function, inliner.method_of_record)
            function.body = [calls.visit(statement) for statement in function.body]
            if not calls.found:
                break
            # An inlined method may call methods of the records that it makes.
            function.body = inliner.block(function.body)
        function.body = [Makers(form).visit(statement) for statement in function.body]
        window = _window_that_fires(form, function)
        if window:
            known = f.EqualExpressions(window)
            function.body = [known.visit(statement) for statement in function.body]
            function.body = f.rewritten(function.body, partial(_unused_key, form, function))
        if not inliner.watched:
            continue
        unchanged = form.names.bind(
            f"unchanged_{function.suffix}",
            *("unchanged", tuple(dict.fromkeys(inliner.watched)), _lacks_fields(function)),
        )
        function.guards.append(f.expression(f"{unchanged}()"))
        if function.fallback is None:
            f.add_fallback(form, function, plain)


def _lacks_fields(function: Function) -> bool:
    """Whether senders leave out fields of the records that a function gets."""
    arriving = function.types.get("values")
    return isinstance(arriving, ColumnsOf) and arriving.lacks_fields


def every_callee_is_bound(form: Form) -> None:
    """Every callee has a binding."""
    for name in form.callees:
        assert name in form.names.bindings, name


def _window_that_fires(form: Form, function: Function) -> dict[str, ast.expr]:
    """The call that gives the window, and its variable, in a function for windows that fire. Empty for other functions."""
    kind, _, index = function.name.rpartition("_")
    if kind != "fire" or not isinstance(form.program.operators[int(index)].spec, specs.WindowSpec):
        return {}
    return {f"context_{index}.window()": f.name("window")}


def _unused_key(form: Form, function: Function, statement: ast.stmt) -> Lines | None:
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
    def __init__(self, form: Form, function: Function) -> None:
        self.form = form
        self.function = function
        self.can_watch = function.is_batch and function.kind in ("process", "fire", "batch")
        self.has_numbers = function.types.get("value") is int
        self.watched: list[tuple[Any, ...]] = []
        self._stack: list[Any] = []
        self._refused: list[ast.Call] = []
        self._used = f.names_in(function.body)

    # Statements

    def block(self, block: Lines) -> Lines:
        return f.flattened(map(self._statement, block))

    def _statement(self, statement: ast.stmt) -> Lines:
        operator = f.operator_of(statement)
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
            return f.with_comment(found, f.comment_of(statement))
        before: Lines = []
        if isinstance(statement, ast.If):
            before = self._condition(statement, operator)
        elif isinstance(statement, f.Send) and statement.key is not None:
            to = FIRST_OUTPUT - statement.number
            before, statement.key = self._computed("key", statement.key, to)
        for inner in f.blocks(statement):
            if not (isinstance(statement, f.ForEachResult) and inner is statement.body):
                inner[:] = self.block(inner)
        self._expressions(statement)
        return [*before, statement]

    def _condition(self, statement: ast.If, operator: int) -> Lines:
        """Inlines a function that decides, such as a filter. Returns its statements before the condition."""
        before, statement.test = self._computed("kept", statement.test, operator)
        if before:
            f.with_comment(before, f.comment_of(statement))
            statement.comment = None  # type: ignore[attr-defined]
        return before

    def _computed(self, name: str, call: ast.expr, operator: int) -> tuple[Lines, ast.expr]:
        """The statements of a called function, and an expression for its value, if it is inlined. Else the call."""
        variable = self._fresh(name, operator)
        give = partial(_assigned, [f.target(variable)])
        found = self._attempt(call, operator, partial(self._returning, operator, give))
        if not found:
            return [], call
        last = found[-1]
        if isinstance(last, ast.Assign) and text_of(last.targets[0]) == variable:
            return found[:-1], last.value
        return found, f.name(variable)

    def _inlined(self, statement: ast.stmt, operator: int) -> Lines | None:
        """The statements that replace a statement with a call. None if the call stays."""
        if isinstance(statement, f.ForEachResult):
            return self._attempt(statement.iterable, operator, partial(self._emits, statement))
        if isinstance(statement, ast.Assign):
            body = partial(self._assigning, operator, statement.targets)
        elif isinstance(statement, ast.Expr):
            body = partial(self._returning, operator, _evaluated)
        else:
            return None
        return self._attempt(statement.value, operator, body)

    def _assigning(
        self, operator: int, targets: list[ast.expr], definition: Definition, call: ast.Call
    ) -> Lines:
        """The statements of a function whose result is assigned.

        A `try` of the function must not catch what unpacking or storing the result raises, and its `finally` runs
        before the result is assigned.
        """
        tries = [item for item in f.all_statements(definition.body) if isinstance(item, ast.Try)]
        is_plain = all(isinstance(target, ast.Name) for target in targets)
        if not tries or (is_plain and not any(item.finalbody for item in tries)):
            return self._returning(operator, partial(_assigned, targets), definition, call)
        result = self._fresh("result", operator)
        give = partial(_assigned, [f.target(result)])
        lines = self._returning(operator, give, definition, call)
        return lines + _assigned(targets, f.name(result))

    def _fold(self, statement: f.Fold, operator: int) -> bool:
        """Inlines a reduce function: as an expression, or as statements that set the result."""
        result = statement.target.id if statement.target else self._fresh("reduced", operator)
        give = partial(_assigned, [f.target(result)])
        body = self._attempt(statement.reduced, operator, partial(self._returning, operator, give))
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
        self,
        call: ast.expr | None,
        operator: int,
        body: Callable[[Definition, ast.Call], Lines],
    ) -> Lines | None:
        """The replacement of a call. None for other expressions, and if the call stays, for which a remark is added."""
        if call is None or not self._is_ours(call):
            return None
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)
        callee = self.form.callees[call.func.id]
        watched, used = len(self.watched), set(self._used)
        try:
            definition = self._definition(callee)
            self._stack.append(callee.function)
            try:
                lines = f.marked(body(definition, call), operator)
                lines = self.block(lines)
            finally:
                self._stack.pop()
        except Refused as refused:
            del self.watched[watched:]
            self._used = used
            if not any(call is item for item in self._refused):  # else as an expression, too
                self._refused.append(call)
                self.form.remark(operator, f"not inlined: {refused}")
            return None
        self.form.remark(operator, f"inlined: {definition.name}")
        return lines

    def _definition(self, callee: Callee) -> Definition:
        definition = definition_of(callee.function)
        if callee.function in self._stack or len(self._stack) >= _DEEPEST:
            raise Refused(f"{definition.name} calls itself; write it as a loop")
        return definition

    def _returning(
        self, operator: int, give: Give, definition: Definition, call: ast.Call
    ) -> Lines:
        if definition.is_generator:
            raise Refused(f"{definition.name} is a generator; return one result")
        if _collects(self._callee_of(call)):
            raise Refused(f"{definition.name} takes a collector; return one result")
        body = self._body(definition, call, operator)
        return structured(body, _value_given(give), definition)

    def _emits(self, statement: f.ForEachResult, definition: Definition, call: ast.Call) -> Lines:
        """The body of a function that emits, with the downstream code in place of each emitted record."""
        operator = f.operator_of(statement)
        places = _Places(
            self, statement, is_nullable=statement.nullable and not definition.is_generator
        )
        loop_over = places.loop_over
        if _collects(self._callee_of(call)):
            return self._collected(definition, call, operator, loop_over)
        body = self._body(definition, call, operator, is_iterated=True)
        if definition.is_generator:
            fresh = partial(self._fresh, operator=operator)
            body = yields_behind_tries(body, fresh, definition)
            inner = _each_yield(body)
            if inner is not None and _is_iterable(inner):
                lines = loop_over(inner)
            else:
                lines = structured(
                    _with_yields(body, places.emit, loop_over, definition),
                    _value_given(_evaluated),
                    definition,
                )
        elif returns_within(body):
            result = self._fresh("result", operator)
            give = partial(_assigned, [f.target(result)])
            lines = structured(body, _value_given(give), definition)
            lines += loop_over(f.name(result))
        elif statement.nullable:
            lines = structured(
                body,
                lambda value: [] if _is_none(value) else loop_over(value or ast.Constant(None)),
                definition,
            )
        else:
            lines = structured(body, _value_given(loop_over), definition)
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
        loop_over: Callable[[ast.expr], Lines],
    ) -> Lines:
        """The body of a function with a collector, which is a list here. Its records are emitted at the end."""
        if definition.is_generator:
            raise Refused(f"{definition.name} yields and takes a collector; use one of them")
        records = self._fresh("collected", operator)
        given = ast.Call(call.func, [*call.args, f.name(records)], call.keywords)
        body = _with_appends(self._body(definition, given, operator), records, definition)

        def give(value: ast.expr | None) -> Lines:
            if not _is_none(value):
                raise Refused(
                    f"{definition.name} returns a value and takes a collector; collect the value"
                )
            return []

        made = f.let(records, ast.List([], ast.Load()), operator)
        (loop,) = loop_over(f.name(records))
        loop.nullable = False  # type: ignore[attr-defined]
        return [made, *structured(body, give, definition), loop]

    # A body with its names replaced

    def _body(
        self, definition: Definition, call: ast.Call, operator: int, *, is_iterated: bool = False
    ) -> Lines:
        """The statements of a function over the arguments of a call. `is_iterated` says that its result is used up."""
        body = [_Unannotated().visit(f.copied(line)) for line in definition.body]
        check_body(body, definition, is_iterated=is_iterated)
        callee = self._callee_of(call)
        constants = _Attributes(self, definition, callee)
        body = [constants.visit(statement) for statement in body]
        arguments = self._arguments(definition, call, body)
        set_in_body = f.stores(body)
        of_comprehensions = comprehended(body)
        local = set(definition.function.__code__.co_varnames) | set(set_in_body)
        check_set_before_read(
            body, set(definition.parameters), local - of_comprehensions, definition
        )
        free = set(definition.function.__code__.co_names) | set(
            definition.function.__code__.co_freevars
        )
        if of_comprehensions & (
            set(definition.parameters) | free | (set(set_in_body) - of_comprehensions)
        ):
            raise Refused(f"{definition.name} uses one name for two variables; rename one")
        parts: dict[str, ast.expr] = {}
        before: Lines = []
        for parameter, argument in arguments.items():
            if parameter not in set_in_body and (
                isinstance(argument, ast.Name) or is_literal(argument)
            ):
                parts[parameter] = argument
                continue
            is_unset = parameter not in set_in_body
            if is_unset and f.reads(body, parameter) <= 1 and _is_pure_choice(argument):
                parts[parameter] = argument
                continue
            variable = self._fresh(parameter, operator)
            before.append(f.let(variable, argument, operator))
            parts[parameter] = f.name(variable)
        for variable in sorted(local - set(parts)):
            if variable in set_in_body:
                parts[variable] = f.name(self._fresh(variable, operator))
        self._free_names(body, definition, parts, callee)
        body = f.flattened(
            _ConstantConditions().visit(f.replaced(statement, parts)) for statement in body
        )
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, ast.expr) and isinstance(
                    node, (ast.BinOp, ast.Call, ast.BoolOp, ast.JoinedStr, ast.Tuple)
                ):
                    check_line(node, definition)
                    break
        return [*before, *body]

    def _callee_of(self, call: ast.Call) -> Callee:
        assert isinstance(call.func, ast.Name)
        return self.form.callees[call.func.id]

    def _arguments(
        self, definition: Definition, call: ast.Call, body: Lines
    ) -> dict[str, ast.expr]:
        """The arguments by parameter, in the order in which they are evaluated."""
        callee, arguments = self._callee_of(call), list(call.args)
        keywords = {item.arg: item.value for item in call.keywords}
        if any(
            isinstance(node, ast.NamedExpr) for node in f.nodes([*arguments, *keywords.values()])
        ):
            raise Refused(
                f"{definition.name} is called with an assignment in an argument; assign before the call"
            )
        if None in keywords or any(isinstance(argument, ast.Starred) for argument in arguments):
            raise Refused(
                f"{definition.name} is called with starred arguments; pass them one by one"
            )
        if callee.instance is not None:
            if callee.owner is None:
                own = definition.parameters[0]
                if any(f.reads(statement, own) for statement in body):
                    raise Refused(
                        f"{definition.name} reads self; pass the attribute as an argument"
                    )
                arguments.insert(0, ast.Constant(None))
            else:
                arguments.insert(0, f.name(callee.owner))
        parameters = definition.parameters
        given: dict[str, ast.expr] = {
            **dict(zip(parameters, arguments, strict=False)),
            **{str(name): value for name, value in keywords.items()},
        }
        found = given | {name: of for name, of in definition.defaults.items() if name not in given}
        by_position = {
            *parameters[: max(len(arguments), definition.function.__code__.co_posonlyargcount)]
        }
        if (
            len(arguments) > len(parameters)
            or keywords.keys() & by_position
            or found.keys() != {*parameters}
        ):
            raise Refused(
                f"{definition.name} is called with a wrong number of arguments; pass as many as it takes"
            )
        return found

    def _fresh(self, base: str, operator: int) -> str:
        where = f.suffix_of(operator)
        base = readable(_Named(base), "local")
        name = f"{base}_{where}"
        while name in self._used or name in self.form.names.bindings:
            base += "_too"
            name = f"{base}_{where}"
        self._used.add(name)
        return name

    def others(self, block: Lines) -> dict[str, ast.expr]:
        """The variables of another copy of a block, by the variables that it sets for a record."""
        return {name: self._another(name) for name in self.function.variables_of_a_record(block)}

    def _another(self, variable: str) -> ast.expr:
        variable = unused(variable, self._used, self.form.names.bindings)
        self._used.add(variable)
        return f.name(variable)

    def _free_names(
        self, body: Lines, definition: Definition, parts: dict[str, ast.expr], callee: Callee
    ) -> None:
        """Finds the object of each free name, and binds it."""
        self._methods(body, definition, callee)
        found: dict[str, None] = {}
        written = f.names_in(definition.body)
        for node in f.nodes(body):
            if isinstance(node, ast.Name) and node.id not in parts:
                if not isinstance(node.ctx, ast.Load):
                    raise Refused(f"{definition.name} sets '{node.id}'")
                found[node.id] = None
        for name in found:
            if name in self.form.names.bindings and name not in written:
                continue  # one that a rule has put there
            meaning = _meaning(name, definition)
            if meaning.kind == "constant":
                parts[name] = ast.parse(repr(meaning.value), mode="eval").body
            elif meaning.kind == "tag":
                parts[name] = f.name(self.tag(name, callee, meaning.value))
            elif meaning.kind == "global":
                is_compared = any(_is_asked_for(name, node) for node in f.nodes(body))
                parts[name] = self._value(name, callee, meaning.value, is_compared=is_compared)

    def _methods(self, body: Lines, definition: Definition, callee: Callee) -> None:
        """`self.helper(x)` and `module.helper(x)` are calls of functions that may be looked into, too."""
        own = definition.parameters[0] if callee.owner and definition.parameters else None
        of_comprehensions = comprehended(body)
        for node in f.nodes(body):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            value, attribute = node.func.value, node.func.attr
            if not isinstance(value, ast.Name) or value.id in of_comprehensions:
                continue
            if isinstance(callee.instance, type) and value.id == own:
                continue
            if value.id == own and callee.instance is not None:
                kind: Any = type(callee.instance)
                method = inspect.getattr_static(kind, attribute, None)
                changing = changing_attributes(kind)
                is_fixed = changing is not None and attribute not in changing
                is_method = isinstance(method, (FunctionType, staticmethod))
                if is_method and is_fixed and attribute not in vars_of(callee.instance):
                    node.func = f.name(self._method(callee, attribute, method))
            elif value.id not in definition.function.__code__.co_varnames:
                self._of_module(node, value.id, attribute, definition, callee)

    def _method(
        self, callee: Callee, attribute: str, method: FunctionType | staticmethod[..., Any]
    ) -> str:
        assert callee.owner is not None
        owner_path = self.form.names.bindings[callee.owner]
        where = callee.owner.rpartition("_")[2]
        name = self._bound(method, where, "attribute_of", owner_path, attribute)
        path = self.form.names.bindings[name]
        self.form.callees[name] = (
            f.Callee(method.__func__, path)
            if isinstance(method, staticmethod)
            else f.Callee(method, path, callee.owner, callee.instance)
        )
        self.watch(owner_path, attribute, ABSENT, is_attribute=True)
        return name

    def _of_module(
        self,
        node: ast.Call,
        name: str,
        attribute: str,
        definition: Definition,
        callee: Callee,
    ) -> None:
        """The call of a function of a module, or of a static method or class method of a class."""
        try:
            space = meaning_of(name, definition).value
        except Refused:
            return
        function = vars_of(space).get(attribute)
        is_known = isinstance(space, ModuleType) and callable(function)
        if not is_known:
            is_method = type(space) is type and isinstance(function, (staticmethod, classmethod))
            changing = replaced_attributes(space, of_class=True) if is_method else None
            if changing is None or attribute in changing:
                return
        names = name, attribute
        node.func = f.name(
            self._class_method(callee, names, space)
            if isinstance(function, classmethod)
            else self._global(callee, names, function)
        )

    def _class_method(self, callee: Callee, names: tuple[str, str], kind: Any) -> str:
        """The name of generated code for a method of a class, which is the object of the call."""
        owner, method = self._global(callee, names[:1], kind), vars(kind)[names[1]]
        where = owner.rpartition("_")[2]
        path = self.form.names.bindings[owner]
        name = self._bound(_Named("_".join(names)), where, "attribute_of", path, names[1])
        self.watch(callee.path, names, method)
        path = self.form.names.bindings[name]
        self.form.callees.setdefault(name, f.Callee(method.__func__, path, owner, kind))
        return name

    def _value(self, name: str, callee: Callee, value: Any, *, is_compared: bool) -> ast.expr:
        """The expression for a global name: a number itself, which is watched, unless its identity `is_compared`."""
        if type(value) in _WRITTEN and is_written_exactly(value) and not is_compared:
            self.watch(callee.path, (name,), value)
            return ast.parse(repr(value), mode="eval").body
        return f.name(self._global(callee, (name,), value))

    def method_of_record(self, kind: type, attribute: str, function: FunctionType) -> str:
        """The name of generated code for the function of a method or property."""
        owner = class_name(kind, self.form)
        path = self.form.names.bindings[owner]
        self.watch(path, attribute, function, is_attribute=True)
        member = attribute if function is vars(kind)[attribute] else f"{attribute}.fget"
        named = _Named(f"{kind.__name__}_{attribute}")
        name = self._bound(named, owner.rpartition("_")[2], "attribute_of", path, member)
        self.form.callees.setdefault(name, f.Callee(function, self.form.names.bindings[name]))
        return name

    def _global(self, callee: Callee, names: tuple[str, ...], value: Any) -> str:
        """The name of generated code for a global name of a function, which must not change."""
        name = self._constant("_".join(names), callee, value, "global", callee.path, names)
        if isinstance(value, staticmethod):
            value = value.__func__
        is_known = isinstance(value, (FunctionType, OutputTag)) or is_written_exactly(value)
        self.watch(callee.path, names, value if is_known else ABSENT)
        if isinstance(value, FunctionType) and not is_of_library(value):
            path = self.form.names.bindings[name]
            self.form.callees.setdefault(name, f.Callee(value, path))
        return name

    def tag(self, name: str, callee: Callee, value: OutputTag[Any]) -> str:
        """The name of generated code for a tag that never changes."""
        return self._constant(name, callee, value, "value", value)

    def class_of(self, path: tuple[Any, ...], attribute: str, callee: Callee, kind: type) -> str:
        """The name of generated code for a class that an attribute refers to."""
        return self._constant(attribute, callee, kind, "attribute_of", path, attribute)

    def _constant(self, name: str, callee: Callee, value: Any, *what: Any) -> str:
        where = callee.path[1] if isinstance(callee.path[1], int) else 0
        name = self._bound(_Named(name), str(where), *what)
        self.form.constants[name] = value
        return name

    def _bound(self, named: Any, where: str, *what: Any) -> str:
        """Binds a name that no local variable has."""
        names = self.form.names
        return names.bind_like(names.function(named, "global", where), *what, taken=self._used)

    def watch(
        self,
        path: tuple[Any, ...],
        names: Any,
        value: Any,
        *,
        is_attribute: bool = False,
        is_sent: bool = False,
    ) -> None:
        """Has names watched (see `Watched`). ABSENT stands for any value. A value that `is_sent` is the same on executors."""
        if not self.can_watch:
            raise Refused(
                "it reads global names, and is not called once per batch; keep them in attributes"
            )
        digest = None if value is ABSENT else digest_of(value)
        self.watched.append((path, names, digest, is_attribute))
        has_value = is_written_exactly(value) or getattr(value, "__defaults__", None)
        self.form.assumes_values |= bool(has_value) and not is_sent

    # Expressions

    def _expressions(self, statement: ast.stmt) -> None:
        operator = f.operator_of(statement)
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

    def _expression(self, node: ast.expr, operator: int) -> ast.expr:
        found: ast.expr = _Calls(self, operator).visit(node)
        return found

    def call(self, call: ast.Call, operator: int) -> ast.expr:
        """The expression that a called function returns, if the function does nothing else; otherwise the call."""

        def body(definition: Definition, made: ast.Call) -> Lines:
            if definition.returned() is None:
                raise Refused(
                    f"{definition.name} has statements, and is called within an expression; give its "
                    "result a name first"
                )
            lines = self._body(definition, made, operator)
            if len(lines) != 1:
                raise Refused(
                    f"{definition.name} would compute an argument more than once; give it a name first"
                )
            (returned,) = lines
            assert isinstance(returned, ast.Return)
            assert returned.value is not None
            return f.marked([ast.Expr(returned.value)], operator)

        found = self._attempt(call, operator, body)
        if found is None or len(found) != 1 or not isinstance(found[0], ast.Expr):
            return call
        return found[0].value


class _Places:
    """The places at which an inlined function emits. Each has a copy of the downstream code.

    The copies have separate variables, except if the input is a sequence of numbers: then the rule `use_arrays` turns
    them into one loop.
    """

    def __init__(self, inliner: _Inliner, statement: f.ForEachResult, *, is_nullable: bool) -> None:
        self.count = self.copied = 0
        self._emitted: set[str] = set()
        self._inliner = inliner
        self._statement = statement
        self._is_nullable = is_nullable

    def _another(self) -> f.ForEachResult:
        self.count += 1
        parts: dict[str, ast.expr] = {}
        if self.count > 1 and not self._inliner.has_numbers:
            parts = self._inliner.others([ast.Expr(self._statement.target), *self._statement.body])
        return f.replaced(self._statement, parts)

    def loop_over(self, iterable: ast.expr) -> Lines:
        """The code that emits the items of an iterable."""
        items = iterable.elts if isinstance(iterable, (ast.Tuple, ast.List)) else None
        if items == []:
            return []
        if items is not None and len(items) == 1 and not isinstance(items[0], ast.Starred):
            return self.emit(items[0])
        emits = self._another()
        emits.iterable = iterable
        emits.nullable = self._is_nullable and not isinstance(iterable, _LISTS)
        return [emits]

    def emit(self, value: ast.expr) -> Lines:
        """The code that emits a value."""
        statement = self._statement
        tag = _tag_of(value, self._inliner.form.constants)
        if statement.side is not None and tag is not None:
            assert isinstance(value, ast.Tuple)
            if tag.tag_id in statement.by_tag:
                return self._emit_tagged(tag.tag_id, value.elts[1])
            if not statement.side:  # nobody reads any side output
                return f.marked(_evaluated(value.elts[1]), f.operator_of(statement))
            return [f.replaced(item, {statement.target.id: value}) for item in statement.side]
        emits, operator = self._another(), f.operator_of(statement)
        target = emits.target.id
        lines = [f.let(target, value, operator)]
        if emits.side is None or not _may_be_tagged(value):
            return [*lines, *emits.body]
        test = f.expression(f"{target}.__class__ is tuple and is_tagged({target})")
        if isinstance(value, ast.Tuple) and _has_no_star(value):  # the pair need not be made
            test = f.expression(f"isinstance({target}[0], {_TAG})")
            self._inliner.form.names.bind(_TAG, "shared")
        tagged = ast.If(test, emits.side, emits.body)
        if not emits.side:
            tagged = ast.If(ast.UnaryOp(ast.Not(), test), emits.body, [])
        tagged.asks = "tag"  # type: ignore[attr-defined]
        return f.marked([*lines, tagged], operator)

    def _emit_tagged(self, tag: str, value: ast.expr) -> Lines:
        """The code that emits a value to a side output."""
        variable, lines = self._statement.by_tag[tag]
        parts: dict[str, ast.expr] = {}
        if tag in self._emitted:
            parts = self._inliner.others([ast.Expr(f.target(variable)), *lines])
            self.copied += sum(1 for _ in f.all_statements(lines))
        self._emitted.add(tag)
        first = f.let(variable, value, f.operator_of(self._statement))
        return [f.replaced(item, parts) for item in (first, *lines)]


def _value_given(give: Give) -> Callable[[ast.expr | None], Lines]:
    """The code that processes a returned value, which is None if the function returns no value."""
    return lambda value: give(value or ast.Constant(None))


def _assigned(targets: list[ast.expr], value: ast.expr) -> Lines:
    """The statement that sets variables."""
    return [ast.Assign(f.copied(targets), value, lineno=0)]


def _evaluated(value: ast.expr) -> Lines:
    """The statement that evaluates an expression whose value is not used."""
    return [] if isinstance(value, (ast.Constant, ast.Name)) else [ast.Expr(value)]


class _Calls(ast.NodeTransformer):
    def __init__(self, inliner: _Inliner, operator: int) -> None:
        self._inliner = inliner
        self._operator = operator

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if self._inliner._is_ours(node):  # noqa: SLF001 - its own part
            return self._inliner.call(node, self._operator)
        return node


def _is_asked_for(name: str, node: ast.AST) -> bool:
    """Whether a node is `x is name`, or compares with it in another way by identity."""
    return (
        isinstance(node, ast.Compare)
        and any(isinstance(op, _IS) for op in node.ops)
        and any(f.is_load_of(side, name) for side in (node.left, *node.comparators))
    )


class _Attributes(ast.NodeTransformer):
    """Puts the values of attributes that only `__init__` or the class sets in their place, and has them watched."""

    def __init__(self, inliner: _Inliner, definition: Definition, callee: Callee) -> None:
        self._inliner = inliner
        is_method = inliner.can_watch and not isinstance(callee.instance, (type, type(None)))
        self._own = definition.parameters[0] if is_method else None
        self._callee = callee

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.slice = self._value(node.slice, (int, str))
        self.generic_visit(node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if isinstance(node.ops[0], _IS) and _is_none(node.comparators[0]):
            node.left = self._value(node.left, (str,))
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        return self._value(node, (*_WRITTEN, OutputTag, type))

    def _value(self, node: ast.expr, kinds: tuple[type, ...]) -> ast.expr:
        if not (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Load)
            and isinstance(node.value, ast.Name)
            and node.value.id == self._own
        ):
            return node
        instance = self._callee.instance
        kind: Any = type(instance)
        changing = changing_attributes(kind)
        is_own = node.attr in vars_of(instance)
        value = (
            vars_of(instance)[node.attr]
            if is_own
            else inspect.getattr_static(kind, node.attr, self)
        )
        if changing is None or node.attr in changing or type(value) not in kinds:
            return node
        if not (isinstance(value, (OutputTag, type)) or is_written_exactly(value)):
            return node
        path: tuple[Any, ...] = ("owner_of", self._callee.path)
        if self._callee.owner is not None:
            path = self._inliner.form.names.bindings[self._callee.owner]
        if not is_own:
            self._inliner.watch(path, node.attr, ABSENT, is_attribute=True)
            path = ("class_with", path, node.attr)
        self._inliner.watch(path, node.attr, value, is_attribute=True, is_sent=is_own)
        if isinstance(value, type):
            return f.name(self._inliner.class_of(path, node.attr, self._callee, value))
        if isinstance(value, OutputTag):
            return f.name(self._inliner.tag(node.attr, self._callee, value))
        return ast.parse(repr(value), mode="eval").body


class _Unannotated(ast.NodeTransformer):
    """Drops annotations of variables. Python does not evaluate them, so a pickled function lacks their names."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


class _ConstantConditions(ast.NodeTransformer):
    """Decides conditions over constants, such as `1 is None`."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        values = [item.value for item in sides if isinstance(item, ast.Constant)]
        is_single = any(value is None or value is True or value is False for value in values)
        if len(sides) == len(values) == 2 and is_single and isinstance(node.ops[0], _IS):  # noqa: PLR2004 - two sides
            return ast.Constant((values[0] is values[1]) == isinstance(node.ops[0], ast.Is))
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.Constant(not node.operand.value)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    def visit_If(self, node: ast.If) -> ast.stmt | Lines:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return (node.body if node.test.value else node.orelse) or [ast.Pass()]
        return node


_IS = (ast.Is, ast.IsNot)


class _Named:
    """Something with a name, for `readable`."""

    def __init__(self, name: str) -> None:
        self.__name__ = name


def vars_of(instance: Any) -> Any:
    """The attributes of an object itself."""
    return getattr(instance, "__dict__", {})


@lru_cache(maxsize=1000)
def _read_globals(code: CodeType) -> frozenset[str]:
    """The global names that a function reads. Its `co_names` also has names of parts that Python leaves out."""
    read = {item.argval for item in dis.get_instructions(code) if item.opname == "LOAD_GLOBAL"}
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(read).union(*map(_read_globals, inner))


def _meaning(name: str, definition: Definition) -> Any:
    is_hidden = (
        name in definition.function.__globals__
        or name in definition.function.__code__.co_freevars
        or name in definition.rebound
    )
    if not is_hidden and hasattr(builtins, name) and name not in _SEE_THEIR_CALLER:
        return _Builtin
    meaning = meaning_of(name, definition)
    function = definition.function
    is_read = is_of_library(function) or name in _read_globals(function.__code__)
    if meaning.kind == "global" and not is_read:  # a pickled function lacks the name
        raise Refused(f"{definition.name} has a part that never runs; delete that part")
    return meaning


class _Builtin:
    kind = "builtin"
    value = None


def _is_iterable(node: ast.expr) -> bool:
    """Whether looping over the value of this expression cannot fail."""
    if not isinstance(node, ast.Call):
        return isinstance(node, _LISTS)
    if isinstance(node.func, ast.Name):
        return node.func.id in ("range", "enumerate", "zip", "sorted", "reversed", "list")
    is_method = isinstance(node.func, ast.Attribute)
    return is_method and node.func.attr in ("split", "rsplit", "splitlines", "items", "values")  # type: ignore[attr-defined]


_LISTS = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)


def _each_yield(body: Lines) -> ast.expr | None:
    """X of a body that is `yield from X`, or `for y in X: yield y`."""
    (statement,) = body if len(body) == 1 else (None,)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.YieldFrom):
        return statement.value.value
    if (
        isinstance(statement, ast.For)
        and isinstance(statement.target, ast.Name)
        and len(statement.body) == 1
        and isinstance(statement.body[0], ast.Expr)
        and isinstance(statement.body[0].value, ast.Yield)
        and isinstance(statement.body[0].value.value, ast.Name)
        and statement.body[0].value.value.id == statement.target.id
    ):
        return statement.iter
    return None


def _with_yields(
    body: Lines,
    emit: Callable[[ast.expr], Lines],
    loop_over: Callable[[ast.expr], Lines],
    definition: Definition,
) -> Lines:
    """A generator's body with the downstream code in place of `yield`."""

    def rewrite(statement: ast.stmt) -> Lines | None:
        if isinstance(statement, ast.Expr):
            if isinstance(statement.value, ast.Yield):
                return emit(statement.value.value or ast.Constant(None))
            if isinstance(statement.value, ast.YieldFrom):
                return loop_over(statement.value.value)
        if any(
            isinstance(node, (ast.Yield, ast.YieldFrom))
            for expression in f.own_expressions(statement)
            for node in ast.walk(expression)
        ):
            raise Refused(
                f"{definition.name} uses the value of a yield; yield in a statement of its own"
            )
        return None

    return f.rewritten(body, rewrite)


def _collects(callee: Callee) -> bool:
    """Whether the last parameter of a method is a collector, which its caller does not pass."""
    method = getattr(callee.function, "__name__", "")
    return callee.instance is not None and takes_collector(callee.instance, method)


def _with_appends(body: Lines, records: str, definition: Definition) -> Lines:
    """A body that appends to a list what it collected with a collector of the same name."""
    appends = 0

    def rewrite(statement: ast.stmt) -> Lines | None:
        nonlocal appends
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and f.is_load_of(call.func.value, records)
            and not call.keywords
        ):
            return None
        if call.func.attr == "close" and not call.args:
            return []
        if call.func.attr == "collect" and len(call.args) == 1:
            call.func.attr = "append"
            appends += not isinstance(call.args[0], ast.Starred)
        return None

    body = f.rewritten(body, rewrite)
    if f.reads(body, records) != appends:
        raise Refused(
            f"{definition.name} uses its collector for more than collect(); call collect() in statements of its own"
        )
    return body


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _may_be_tagged(value: ast.expr) -> bool:
    """Whether a value may be a (tag, record) pair."""
    if isinstance(value, ast.Tuple):
        if not _has_no_star(value):
            return True
        return len(value.elts) == _PAIR and _may_be_tag(value.elts[0])
    return not isinstance(
        value,
        (ast.Constant, ast.BinOp, ast.JoinedStr, ast.Dict, ast.List, ast.Compare, ast.UnaryOp),
    )


def _has_no_star(value: ast.Tuple) -> bool:
    return not any(isinstance(item, ast.Starred) for item in value.elts)


def _tag_of(value: ast.expr, constants: Mapping[str, Any]) -> OutputTag[Any] | None:
    """The tag of a value that is a pair of a tag, by its global name, and a record."""
    if not isinstance(value, ast.Tuple) or len(value.elts) != _PAIR:
        return None
    tag, record = value.elts
    known = constants.get(tag.id) if isinstance(tag, ast.Name) else None
    return known if isinstance(known, OutputTag) and not isinstance(record, ast.Starred) else None


def _may_be_tag(value: ast.expr) -> bool:
    return not isinstance(
        value, (ast.Constant, ast.BinOp, ast.JoinedStr, ast.Dict, ast.List, ast.Compare, ast.Tuple)
    )


def _is_pure_choice(node: ast.expr) -> bool:
    """Whether an argument only reads variables, so that it may be computed later or not at all."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.IfExp(
            test=ast.Compare(ops=[ast.Is() | ast.IsNot()], left=left, comparators=[right])
        ):
            return all(map(_is_pure_choice, (left, right, node.body, node.orelse)))
    return False
