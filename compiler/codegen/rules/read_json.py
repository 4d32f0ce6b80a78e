"""`json.loads` decodes only the fields that are asked for, or at least faster (runtime/task/generated_code.py).

>>> import json
>>> change("read_json", lambda lines: lines.map(json.loads).map(lambda row: (row["user"], row["ts"])))
- if not unchanged_0():
+ if not (unchanged_0() and (objects_1 := read_json_1(values)) is not None):
- for value in values:
-   value_1 = loads_1_too(value)
-   item_2_0 = value_1['user']
-   item_2_1 = value_1['ts']
-   if item_2_0.__class__ not in FROZEN:
-     item_2_0 = private(item_2_0)
-   if item_2_1.__class__ not in FROZEN:
-     item_2_1 = private(item_2_1)
+ for value, value_1 in zip(values, objects_1):
+   item_2_0 = value_1.field_0
+   item_2_1 = value_1.field_1

The texts of a batch are decoded before its loop. Where one of them is in doubt (malformed, a field is missing), a
function that calls `json.loads` takes the whole batch, and raises what that raises, at the record that it
is about.
"""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.analysis import types_of

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form, Function

_LOOPS = frozenset({"values", "zip(values, timestamps)"})
"""What a loop over a batch goes over, whose records have timestamps or have not."""

_CONSTANTS = (int, bool, float, str, type(None))


def read_json(form: Form) -> None:
    """Rewrites calls that are known to be of `json.loads`."""
    loads = {name for name, value in form.constants.items() if value is json.loads}
    if not loads:
        return
    for function in form.functions:
        if function.guards:
            types = types_of(function, form)
            _Reading(form, function, loads, types).run()


class _Reading:
    def __init__(
        self, form: Form, function: Function, loads: set[str], types: dict[str, Any]
    ) -> None:
        self.form = form
        self.function = function
        self.loads = loads
        self.types = types

    def run(self) -> None:
        for loop in self.function.body:
            if (
                isinstance(loop, ast.For)
                and self.types.get("value") is str
                and ast.unparse(loop.iter) in _LOOPS
            ):
                self._narrow(loop)
        for statement in f.all_statements(self.function.body):
            for expression in f.own_expressions(statement):
                for node in ast.walk(expression):
                    if self._is_loads(node):
                        self._faster(node, f.operator_of(statement))  # type: ignore[arg-type]

    def _is_loads(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in self.loads
            and len(node.args) == 1
            and not node.keywords
        )

    def _faster(self, call: ast.Call, operator: int) -> None:
        name = self.form.names.bind("fast_loads", "fast_loads")
        call.func = f.name(name)
        text = call.args[0]
        is_text = isinstance(text, ast.Name) and self.types.get(text.id) is str
        call.is_fresh = is_text  # type: ignore[attr-defined]
        self.form.remark(operator, "json.loads decodes by msgspec, where it is installed")

    def _narrow(self, loop: ast.For) -> None:
        """Decodes fields only, where a text is parsed whatever happens, and nothing else is done with the object."""
        for position, statement in enumerate(loop.body):
            if not (
                isinstance(statement, ast.Assign)
                and self._is_loads(statement.value)
                and isinstance(statement.targets[0], ast.Name)
            ):
                if not isinstance(statement, f.Count) and not _sees_only_times(statement):
                    return
                continue
            assert isinstance(statement.value, ast.Call)
            argument, parsed = statement.value.args[0], statement.targets[0].id
            if not (isinstance(argument, ast.Name) and argument.id == "value"):
                return
            fields = self._fields(parsed)
            if not fields:
                return
            operator = f.operator_of(statement)
            objects = f"objects_{operator}"
            read = self.form.names.bind(f"read_json_{operator}", "json_fields", tuple(fields))
            self.function.guards.append(f.expression(f"({objects} := {read}(values)) is not None"))
            self.function.fresh.add(parsed)
            rest = loop.body[position + 1 :]
            names = [name for name, _ in fields]
            attributes = _Attributes(parsed, names)
            rest = [attributes.visit(item) for item in rest]
            f.with_comment(rest, f.comment_of(statement))
            loop.body = [*loop.body[:position], *rest]
            if isinstance(loop.target, ast.Tuple) and isinstance(loop.iter, ast.Call):
                loop.target.elts.append(f.target(parsed))
                loop.iter.args.append(f.name(objects))
            else:
                loop.target = ast.Tuple([f.target("value"), f.target(parsed)], ast.Store())
                loop.iter = f.expression(f"zip(values, {objects})")
            self.form.remark(operator, f"reads of JSON only {', '.join(map(repr, names))}")
            return

    def _fields(self, parsed: str) -> list[tuple[str, tuple[Any, ...]]]:
        """The keys that a dictionary is asked for, with their defaults; none where anything else is done with it."""
        if f.stores(self.function.body)[parsed] != 1:
            return []
        found: dict[str, tuple[Any, ...]] = {}
        uses = 0
        for statement in self.function.body:
            for node in ast.walk(statement):
                key = _key_asked(node, parsed)
                if key is None:
                    continue
                uses += 1
                if found.setdefault(*key) != key[1]:
                    return []
        if uses != sum(f.reads(statement, parsed) for statement in self.function.body):
            return []
        return list(found.items())


def _sees_only_times(statement: ast.stmt) -> bool:
    """Whether a statement only notes the greatest timestamp, which says nothing of the record and can't fail."""
    return isinstance(statement, ast.If) and all(
        node.id == "timestamp" or node.id.startswith("greatest_")
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
    )


def _key_asked(node: ast.AST, parsed: str) -> tuple[str, tuple[Any, ...]] | None:
    """The key and the default of `parsed[key]`, `parsed.get(key)` and `parsed.get(key, default)`."""
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


class _Attributes(ast.NodeTransformer):
    def __init__(self, parsed: str, names: list[str]) -> None:
        self._parsed = parsed
        self._names = names

    def visit(self, node: ast.AST) -> Any:
        asked = _key_asked(node, self._parsed)
        if asked is not None:
            attribute = f"field_{self._names.index(asked[0])}"
            found = ast.Attribute(f.name(self._parsed), attribute, ast.Load())
            found.is_field = True  # type: ignore[attr-defined]
            return found
        return super().visit(node)
