"""`json.loads` decodes only the fields that the program reads, or whole texts with msgspec (runtime/task/generated_code.py).

>>> import json
>>> change("read_json", lambda lines: lines.map(json.loads).map(lambda row: (row["user"], row["ts"])))
- if not unchanged_0():
+ if not (unchanged_0() and (objects_1 := read_json_1(values)) is not None):
- for value in values:
-   value_1 = loads_1_too(value)
-   item_2_0 = value_1['user']
-   item_2_1 = value_1['ts']
-   if item_2_0.__class__ not in IMMUTABLE:
-     item_2_0 = own_copy(item_2_0)
-   if item_2_1.__class__ not in IMMUTABLE:
-     item_2_1 = own_copy(item_2_1)
+ for value, value_1 in zip(values, objects_1):
+   item_2_0 = value_1.field_0
+   item_2_1 = value_1.field_1

The texts of a batch are decoded before its loop. If the decoder cannot decide one of them (malformed text, a missing
field), a function that calls `json.loads` processes the whole batch. So an exception is raised at the same record as
without this rule.

A dictionary that is only sent to another task is sent as the fields that the receiver reads (fields_read.py):

>>> def by_user(lines):
...     return lines.map(json.loads).key_by(lambda row: row["user"])
>>> change("read_json", lambda lines: by_user(lines).map(lambda row: row["ts"]))
- if not unchanged_0():
+ if not (unchanged_0() and (objects_1 := read_json_1(values)) is not None):
- for value in values:
-   value_1 = loads_1_too(value)
-   if value_1.__class__ not in IMMUTABLE:
-     value_1 = own_copy(value_1)
-   keys_0.append(value_1['user'])
-   values_0.append(value_1)
+ for value, value_1 in zip(values, objects_1):
+   keys_0.append(value_1.field_0)
+   column_0_0.append(value_1.field_1)

In batch mode the receiver sorts by key. A key that is no field is sent beside the fields. A process function may emit the
dictionary itself. If the receiver may need more of it, it is sent as its text (runtime/records/columns.py), and the receiver
decodes the fields that it reads:

>>> def odd(row): return row["ts"] % 2
>>> def by_parity(lines):
...     return lines.map(json.loads).key_by(odd).filter(odd)
>>> change("read_json", by_parity, mode="BATCH")
- if not unchanged_0():
+ if not (unchanged_0() and (objects_1 := read_json_1(values)) is not None):
- for value in values:
-   value_1 = loads_1_too(value)
-   if value_1.__class__ not in IMMUTABLE:
-     value_1 = own_copy(value_1)
-   keys_0.append(value_1['ts'] % 2)
-   values_0.append(value_1)
+ for value, value_1 in zip(values, objects_1):
+   column_0_1.append(value_1.field_0 % 2)
+   column_0_0.append(value)

`Click(**json.loads(text))` reads the fields of a dataclass or named tuple. A text with other fields is malformed here.
"""

from __future__ import annotations

import ast
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.displays import Display, parameters_of
from opchain.compiler.codegen.fields_read import MOST_COLUMNS_OF_OTHERS, reader_without_fields
from opchain.compiler.codegen.function_source import calls_builtin
from opchain.compiler.codegen.internal_functions import Trait, calls
from opchain.compiler.codegen.names import stem, unused
from opchain.compiler.codegen.rules.unpack_records import without_tests
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.static_types import JsonOf, SentRecords
from opchain.runtime.program.vertex_program import FIRST_OUTPUT
from opchain.runtime.records.columns import JSON, JSON_AND_KEY, Shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.compiler.codegen.form import Form, Function

_LOOPS = frozenset({"values", "zip(values, timestamps)"})
"""What a loop over a batch iterates over: records without timestamps, or with them."""

_CHANGE = frozenset(
    {
        *("append", "clear", "extend", "insert", "pop", "popitem", "remove", "reverse"),
        *("setdefault", "sort", "update"),
    }
)
"""Methods that change a list or a dict."""

_KEY = "...key"
"""The name of a field with the key of a record. No program reads it, because the record is never built."""

_CONSTANTS = (int, bool, float, str, type(None))


def read_json(form: Form) -> None:
    """Rewrites calls that are known to be of `json.loads`, and loops over dictionaries that arrive as JSON."""
    loads = {name for name, value in form.constants.items() if value is json.loads}
    for function in list(form.functions):
        if isinstance(function.types.get("values"), JsonOf):
            for loop in _loops(function):
                _receive(form, function, loop)
        elif loads and function.guards:
            types = types_of(function, form)
            _Reading(form, function, loads, types).run()


def _loops(function: Function) -> list[ast.For]:
    return [
        statement
        for statement in function.body
        if isinstance(statement, ast.For) and text_of(statement.iter) in _LOOPS
    ]


def _decoded(
    form: Form, function: Function, uses: _Uses, number: int | str, texts: str
) -> tuple[str, str]:
    """The variable with the decoded fields of all texts of a batch, and the condition that all could be decoded."""
    objects = f"objects_{number}"
    fields = tuple(uses.fields.items())
    read = form.names.bind(f"read_json_{number}", "json_fields", fields, uses.has_no_others)
    function.fresh.add(uses.parsed)
    return objects, f"({objects} := {read}({texts})) is not None"


def _receive(form: Form, function: Function, loop: ast.For) -> None:
    """Decodes fields of the texts that a sender has parsed, if only fields are read."""
    plain, body = function.copy(), f.copied(loop.body)
    _expect_dicts(form, function, loop)
    uses = _Uses(form, function, "value")
    if not uses.fields or uses.sends or function.kind == "fallback":
        loop.body = body
        return
    if function.fallback is None:
        f.add_fallback(form, function, plain)
    number = function.name.rpartition("_")[2]
    objects, can_be_decoded = _decoded(form, function, uses, number, "values.lists[0]")
    form.names.bind("Columns", "shared")
    function.guards.append(f.expression(f"(values.__class__ is Columns and {can_be_decoded})"))
    loop.body = uses.rewritten(loop.body, "text")
    beside = ", timestamps" if isinstance(loop.target, ast.Tuple) else ""
    targets = ["text", "value", *(["timestamp"] if beside else [])]
    loop.target = ast.Tuple([f.target(name) for name in targets], ast.Store())
    loop.iter = f.expression(f"zip(values.lists[0], {objects}{beside})")
    form.remark(0, _read_of(uses.fields))


def _expect_dicts(form: Form, function: Function, loop: ast.For) -> None:
    """Removes tests whether `value`, which is a dict, is None or has a tag, and other variables for it."""
    loop.body = without_tests(form, loop.body, {}, {"value": dict})
    times = f.stores(function.body)
    f.forward_variables(
        function, lambda name, of: of == "value" and times[name] == times["value"] == 1
    )


def _read_of(fields: Mapping[str, Any]) -> str:
    return f"reads of JSON only {', '.join(map(repr, fields))}"


class _Reading:
    def __init__(
        self, form: Form, function: Function, loads: set[str], types: dict[str, Any]
    ) -> None:
        self.form = form
        self.function = function
        self.loads = loads
        self.types = types

    def run(self) -> None:
        if self.types.get("value") is str:
            for loop in _loops(self.function):
                loop.body = f.flattened(self._named(item) for item in loop.body)
                self._narrow(loop)
        for statement, call in f.calls_of(self.function.body, self.loads):
            self._faster(call, notes.operator(statement))

    def _named(self, statement: ast.stmt) -> list[ast.stmt]:
        """Gives the dict a name in `x = json.loads(text)["a"]` and in `x = Click(**json.loads(text))`."""
        holder = _holder(getattr(statement, "value", None), self.loads)
        if not isinstance(statement, ast.Assign) or holder is None:
            return [statement]
        operator = notes.operator(statement)
        name = f"object_{f.suffix_of(operator)}"
        name = unused(name, f.names_in(self.function.body))
        named = f.let(name, holder.value, operator)
        holder.value = f.name(name)
        return [*f.with_comment([named], notes.comment(statement)), statement]

    def _faster(self, call: ast.Call, operator: int) -> None:
        name = self.form.names.bind("fast_loads", "fast_loads")
        call.func = f.name(name)
        text = call.args[0]
        is_text = isinstance(text, ast.Name) and self.types.get(text.id) is str
        notes.is_fresh.set(call, is_text)
        self.form.remark(operator, "json.loads decodes by msgspec, where it is installed")

    def _narrow(self, loop: ast.For) -> None:
        """Decodes only some fields, if a text is always parsed, and the object is only used for these fields."""
        for position, statement in enumerate(loop.body):
            if not (
                isinstance(statement, ast.Assign)
                and f.is_call_of(statement.value, self.loads)
                and isinstance(statement.targets[0], ast.Name)
            ):
                if not isinstance(statement, f.Count) and not _sees_only_times(statement):
                    return
                continue
            assert isinstance(statement.value, ast.Call)
            argument, parsed = statement.value.args[0], statement.targets[0].id
            if not f.is_load_of(argument, "value"):
                return
            uses = _Uses(self.form, self.function, parsed)
            if not (uses.fields or uses.sends) or not all(map(self._may_go_as_text, uses.sends)):
                return
            if uses.sends and not all(
                map(_changes_nothing, f.all_statements(loop.body[position + 1 :]))
            ):
                return
            for send in uses.sends:
                uses.project(send)
            operator = notes.operator(statement)
            objects, can_be_decoded = _decoded(self.form, self.function, uses, operator, "values")
            self.function.guards.append(f.expression(can_be_decoded))
            rest = uses.rewritten(loop.body[position + 1 :], "value")
            f.with_comment(rest, notes.comment(statement))
            loop.body = [*loop.body[:position], *rest]
            if isinstance(loop.target, ast.Tuple) and isinstance(loop.iter, ast.Call):
                loop.target.elts.append(f.target(parsed))
                loop.iter.args.append(f.name(objects))
            else:
                loop.target = ast.Tuple([f.target("value"), f.target(parsed)], ast.Store())
                loop.iter = f.expression(f"zip(values, {objects})")
            if uses.fields:
                self.form.remark(operator, _read_of(uses.fields))
            return

    def _may_go_as_text(self, send: f.Send) -> bool:
        """Whether this statement sends all records of an output."""
        sends = self.form.sends(send.number)
        return [item for function, item in sends if function.kind != "fallback"] == [send]


class _Uses:
    """How a dict is used: `fields` are the keys that are read, with their defaults, and `sends` what sends it whole.

    Both are empty if the dict is used in any other way than to read keys, to create a record by `Click(**parsed)`, to send it, or
    to pass it to internal functions that rarely run. If records are created from it, it `has_no_others`. `projected` has, by
    output, the names of the fields that are sent instead of the whole dict.
    """

    def __init__(self, form: Form, function: Function, parsed: str) -> None:
        self.form = form
        self.parsed = parsed
        self.has_no_others = False
        self.fields: dict[str, tuple[Any, ...]] = {}
        self.sends: list[f.Send] = []
        self.projected: dict[int, list[str]] = {}
        found: dict[str, tuple[Any, ...]] = {}
        of_records: set[frozenset[str]] = set()
        sends = [
            statement
            for statement in f.all_statements(function.body)
            if isinstance(statement, f.Send) and self._is_whole(statement.value)
        ]
        uses = len(sends)
        for node in f.nodes(function.body):
            uses += _is_cold(node) and sum(map(self._is_whole, node.args))  # type: ignore[attr-defined]
            key, created = _key_asked(node, parsed), _created(node, parsed, form.constants)
            asked = [key] if key is not None else list(created.items())
            uses += bool(asked)
            of_records |= {frozenset(created)} if created else set()
            if not all(
                _is_same(found.setdefault(name, default), default) for name, default in asked
            ):
                return
        reads = sum(f.reads(statement, parsed) for statement in function.body)
        self.has_no_others = bool(of_records)
        if of_records - {frozenset(found)}:
            return  # a text with one of the fields is malformed for a record without it
        if f.stores(function.body).get(parsed) == 1 and uses == reads:
            self.fields, self.sends = found, sends

    def _is_whole(self, node: ast.AST) -> bool:
        return f.is_load_of(node, self.parsed)

    def rewritten(self, block: list[ast.stmt], text: str) -> list[ast.stmt]:
        """A block that reads attributes of an object, sends the text in the variable, and parses it where that is unusual."""
        transformer, form = _Attributes(self, text), self.form
        block = [transformer.visit(item) for item in block]
        if transformer.parses:
            form.names.bind("fast_loads", "fast_loads")
        return f.rewritten(block, partial(self._sent, text))

    def project(self, send: f.Send) -> None:
        """Has only fields sent, if they are enough for the reader. A field has the same default here and there.

        In batch mode the reader gets its keys from the records, so a key that is no field is sent as one more field.
        """
        reader = reader_without_fields(self.form, send.number, JsonOf(), "decide_in_branches")
        if reader is None or len(_loops(reader.function)) != 1:
            return
        _expect_dicts(reader.form, reader.function, *_loops(reader.function))
        theirs = _Uses(reader.form, reader.function, "value")
        asked, key = dict(theirs.fields), None
        if send.key is not None and self.form.program.is_batch:
            key = _key_asked(send.key, self.parsed)
        if theirs.sends or theirs.has_no_others or not asked or "..." in asked:
            return
        if key is not None:
            asked.setdefault(*key)
        has_same = all(
            _is_same(self.fields.get(name, default), default) for name, default in asked.items()
        )
        if self.has_no_others and not asked.keys() <= self.fields.keys():
            return
        if has_same and len(asked) < MOST_COLUMNS_OF_OTHERS:
            self.fields |= asked
            self.projected[send.number] = list(asked)

    def field(self, name: str) -> ast.expr:
        """The expression of a field."""
        attribute = f"field_{list(self.fields).index(name)}"
        found = ast.Attribute(f.name(self.parsed), attribute, ast.Load())
        notes.is_field.set(found, True)
        return found

    def _sent(self, text: str, statement: ast.stmt) -> list[ast.stmt] | None:
        if statement not in self.sends:
            return None
        assert isinstance(statement, f.Send)
        names = self.projected.get(statement.number)
        if names is None:
            return _as_text(self.form, statement, text)
        fields = dict(zip(names, map(self.field, names), strict=True))
        if statement.key is not None and self.form.program.is_batch:
            is_field = ast.dump(statement.key) in map(ast.dump, fields.values())
            fields |= {} if is_field else {_KEY: statement.key}
        fields["..."] = ast.Constant(...)
        statement.value = Display([*fields.values()], Shape(dict, (*fields,))).expression(self.form)
        return None


def _holder(node: ast.AST | None, loads: set[str]) -> Any:
    """The node with a call of `json.loads` that is evaluated before the rest of an expression; None if there is none."""
    holder: Any
    match node:
        case ast.Call(func=ast.Name(), args=[], keywords=[ast.keyword(arg=None) as holder]):
            pass
        case ast.Call(func=ast.Attribute() as holder) | (ast.Subscript() as holder):
            pass
        case _:
            return None
    return holder if f.is_call_of(holder.value, loads) else _holder(holder.value, loads)


def _changes_nothing(statement: ast.stmt) -> bool:
    """Whether a statement certainly changes no value in a dict of JSON, such as a list."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return (
        not isinstance(statement, (ast.AugAssign, ast.Delete))
        and all(isinstance(target, (ast.Name, ast.Tuple)) for target in targets)
        and all(map(_only_looks, f.own_expressions(statement)))
    )


def _only_looks(expression: ast.expr) -> bool:
    """Whether an expression only calls builtins, internal functions that read, and methods that change no container."""
    methods = set()
    for node in ast.walk(expression):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method, of = node.func.attr, node.func.value
            is_known = isinstance(of, ast.Constant) or f.item_variable(of) or method == "get"
            if not is_known or method in _CHANGE or method.startswith("_"):
                return False
            methods.add(node.func)
        elif isinstance(node, ast.Call):
            if not calls_builtin(node) and not _is_cold(node):
                return False
        elif isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) or (
            isinstance(node, ast.Attribute) and node not in methods and node.attr != "__class__"
        ):
            return False
    return True


def _as_text(form: Form, send: ast.stmt, text: str) -> list[ast.stmt]:
    assert isinstance(send, f.Send)
    number, operator = send.number, notes.operator(send)
    sends_key = send.key is not None and form.program.is_batch
    layout = JSON_AND_KEY if sends_key else JSON
    column = form.names.bind(f"column_{number}_0", "column", number, layout, 0, False)
    lines: list[ast.stmt] = []
    if send.key is not None:
        keys = f"keys_{number}"
        if sends_key:
            keys = form.names.bind(f"column_{number}_1", "column", number, layout, 1, True)
        lines += f.marked([f.made(f.Append, list=keys, value=send.key)], FIRST_OUTPUT - number)
    comment = (notes.comment(send) or "") + ", as JSON"
    sent = f.made(f.Append, list=column, value=f.name(text))
    notes.comment.set(sent, comment)
    lines.append(sent)
    if send.time is not None:
        lines.append(f.made(f.Append, list=f"timestamps_{number}", value=send.time))
    form.sent[number] = SentRecords(JsonOf(), key_list=1 if sends_key else None)
    form.remark(operator, "sent as JSON")
    return f.marked(lines, operator)


def _is_same(default: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two defaults are the same. They are compared by their repr, because 0 equals False and 0.0."""
    return repr(default) == repr(other)


def _is_cold(node: ast.AST) -> bool:
    return calls(node, Trait.RARE)


def _sees_only_times(statement: ast.stmt) -> bool:
    """Whether a statement only tracks the greatest timestamp. It does not use the record and cannot fail."""
    return isinstance(statement, ast.If) and all(
        node.id == "timestamp" or stem(node.id) == "greatest"
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
    )


def _key_asked(node: ast.AST, parsed: str) -> tuple[str, tuple[Any, ...]] | None:
    """The key and the default of `parsed[key]`, `parsed.get(key)` or `parsed.get(key, default)`."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        key = f.constant_item(node, parsed)
        return (key, ()) if type(key) is str else None
    most = 2
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == parsed
        and 1 <= len(node.args) <= most
        and not node.keywords
        and all(isinstance(item, ast.Constant) for item in node.args)
    ):
        key, *default = (item.value for item in node.args)  # type: ignore[attr-defined]
        if type(key) is str and all(type(item) in _CONSTANTS for item in default):
            return key, tuple(default or (None,))
    return None


def _created(
    node: ast.AST, parsed: str, constants: Mapping[str, Any]
) -> dict[str, tuple[Any, ...]]:
    """The fields of `Click(**parsed)` with their defaults. Empty for any other expression."""
    match node:
        case ast.Call(args=[], keywords=[ast.keyword(arg=None, value=given)]):
            parameters = parameters_of(constants.get(f.called(node)))
            if parameters is not None and f.is_load_of(given, parsed):
                names, defaults = parameters
                if all(type(item) in _CONSTANTS for item in defaults):
                    required = len(names) - len(defaults)
                    return dict.fromkeys(names[:required], ()) | {
                        name: (default,)
                        for name, default in zip(names[required:], defaults, strict=True)
                    }
    return {}


class _Attributes(ast.NodeTransformer):
    def __init__(self, uses: _Uses, text: str) -> None:
        self._uses = uses
        self._form = uses.form
        self._parsed = uses.parsed
        self._text = text
        self.parses = False

    def _field(self, name: str, node: ast.AST) -> ast.expr:
        return f.placed(self._uses.field(name), node)

    def visit(self, node: ast.AST) -> Any:
        asked = _key_asked(node, self._parsed)
        if asked is not None:
            return self._field(asked[0], node)
        created = _created(node, self._parsed, self._form.constants)
        if created:
            shape = Shape(self._form.constants[f.called(node)], tuple(created))
            fields = [self._field(name, node) for name in created]
            return Display(fields, shape).expression(self._form)
        visited = super().visit(node)
        if _is_cold(visited):
            whole = f.expression(f"fast_loads({self._text})")
            self.parses = self.parses or f.reads(visited.args, self._parsed) > 0
            visited.args = [
                f.replaced(item, {self._parsed: whole}) if isinstance(item, ast.Name) else item
                for item in visited.args
            ]
        return visited
