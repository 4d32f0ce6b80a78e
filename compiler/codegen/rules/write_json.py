"""`json.dumps` of a dictionary display fills a template. Other calls share one encoder.

>>> import json
>>> change("write_json", lambda numbers: numbers.map(lambda x: json.dumps({"x": x})))
-   value_1 = json_dumps_1({'x': value})
-   if value_1.__class__ not in IMMUTABLE:
-     value_1 = own_copy(value_1)
+   value_1 = json_object_1(value)

The text is the same, character by character, and so are the errors (`JsonObject` in runtime/task/generated_code.py).
Only calls with one argument are rewritten: others ask for another form of text.
"""

from __future__ import annotations

import ast
import json

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes

_MOST_FIELDS = 100


def write_json(form: f.Form) -> None:
    """Rewrites calls that are known to be of `json.dumps`."""
    dumps = {name for name, value in form.constants.items() if value is json.dumps}
    if not dumps:
        return
    for function in form.functions:
        if function.guards:
            for statement, call in f.calls_of(function.body, dumps):
                _rewrite(form, call, notes.operator(statement))


def _rewrite(form: f.Form, call: ast.Call, operator: int) -> None:
    (value,) = call.args
    notes.is_fresh.set(call, True)
    fields = _fields(value)
    if fields is None:
        call.func = f.name(form.names.bind("fast_dumps", "fast_dumps"))
        form.remark(operator, "json.dumps makes its encoder once")
        return
    assert isinstance(value, ast.Dict)
    name, what = f"json_object_{f.suffix_of(operator)}", ("json_object", fields)
    call.func = f.name(form.names.bind_like(name, *what))
    call.args = value.values
    form.remark(operator, f"writes JSON with the fields {', '.join(map(repr, fields))}")


def _fields(value: ast.expr) -> tuple[str, ...] | None:
    """The keys of a dict display, if they are different constant strings."""
    if not isinstance(value, ast.Dict) or not 0 < len(value.keys) <= _MOST_FIELDS:
        return None
    keys = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
    fields = tuple(key for key in keys if type(key) is str)
    return fields if len(set(fields)) == len(keys) else None
