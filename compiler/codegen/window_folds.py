"""How the windows of a vertex fold records, as expressions, and whether the fold is associative.

Batch mode uses it to leave records unsorted (rules/skip_sort.py). Senders use it to fold records before the exchange
(rules/fold_windows.py).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.function_source import is_literal
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.static_types import Types, never_raises, type_of
from opchain.compiler.codegen.window_selections import HELD, WindowSelection, selection_of
from opchain.runtime.functions.function import has_lifecycle
from opchain.runtime.operators.windows.aligned_window_operator import is_aligned
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.task.generated_code import side_tags

if TYPE_CHECKING:
    from opchain.runtime.program.vertex_program import VertexProgram


_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)

_IN_ORDER = {"sum": "{} + {}", "min": "min({}, {})", "max": "max({}, {})"}
"""The forms of a fold whose values may be of any numbers: the window folds them one by one, in their order."""


IN_ANY_ORDER = frozenset({"tuple", "same", "sum", "min", "max"})
"""The kinds of folds that give the same result for records in any order."""


@dataclass(frozen=True, slots=True)
class WindowFold:
    """The fold of a window operator at the head of a vertex.

    Attributes:
        pace: The size, slide and offset of the windows.
        first: The initial accumulator. If it `is_reduce`, the value of the first record.
        folded: The next value, over `HELD` and the variables of the loop.
    """

    pace: tuple[int, int, int]
    first: ast.expr
    folded: ast.expr
    is_reduce: bool

    def kinds(self, types: Types, keys: set[str]) -> tuple[str, ...] | None:
        """How two folded values are merged: "sum", "min", "max", "first" or "last"; None if the fold is not associative.

        For tuples, "tuple" and the kinds of all fields. A field is "same" if it equals one of the `keys` or a constant. If
        the values may be other numbers than ints, the kind is "sums", "mins" or "maxs": a sum of floats depends on their
        order. No expression can raise an exception, except for reading an item of the record.
        """
        first, folded = self.first, self.folded
        if not isinstance(folded, ast.Tuple):
            kind = self._kind(first, folded, HELD, types, keys)
            return None if kind is None else (kind,)
        if not isinstance(first, ast.Tuple) or len(folded.elts) != len(first.elts):
            return None
        kinds = ["tuple"]
        for place, (begin, item) in enumerate(zip(first.elts, folded.elts, strict=True)):
            kind = self._kind(begin, item, f"{HELD}[{place}]", types, keys)
            if kind is None:
                return None
            kinds.append(kind)
        return tuple(kinds)

    def _kind(
        self, first: ast.expr, folded: ast.expr, old: str, types: Types, keys: set[str]
    ) -> str | None:
        if text_of(folded) == old:
            is_same = _is_int(first) or text_of(first) in keys
            return "same" if is_same else "first"
        if self.is_reduce and text_of(folded) == text_of(first):
            return "last"
        kind, new = combined_with(folded, old)
        if self.is_reduce:  # it begins with the first record
            begins = new is not None and text_of(first) == text_of(new)
        else:
            begins = _is_int(first)
        if new is None or not begins or f.reads(new, HELD):
            return None
        if not (never_raises(new, types) or f.item_variable(new)):
            return None
        if type_of(new, types) is int:
            return kind
        is_in_order = text_of(folded) == _IN_ORDER[kind].format(old, text_of(new))
        return f"{kind}s" if is_in_order else None


def window_fold(vertex: VertexProgram) -> WindowFold | WindowSelection | None:
    """The fold of a vertex's windows, over `value` alone, or their selection; None if senders can do neither.

    The windows have no gaps, and drop late records. Otherwise the exact timestamps or the records themselves are needed.
    """
    from opchain.compiler.codegen.lower import lowered  # noqa: PLC0415 - it imports the form
    from opchain.compiler.codegen.rules.inline_functions import inline_functions  # noqa: PLC0415
    from opchain.compiler.codegen.rules.write_aggregations import (  # noqa: PLC0415
        write_aggregations,
    )

    spec = vertex.operators[0].spec
    if vertex.chained_sources or not isinstance(spec, specs.WindowSpec):
        return None
    if spec.allowed_lateness_ms or not is_aligned(spec, is_batch=vertex.is_batch):
        return None
    size, slide, _ = spec.assigner.pace  # type: ignore[attr-defined]
    tag = spec.late_tag
    if slide > size or (tag is not None and tag.tag_id in side_tags(vertex, 0)):
        return None
    function = spec.aggregate if spec.aggregate is not None else spec.reduce
    if function is None or has_lifecycle(function):
        return None
    form = f.Form(vertex)
    lowered(form)
    loop = next(item for item in form.functions if item.name == "process_0")
    form.functions = [loop]
    inline_functions(form)
    write_aggregations(form)
    found: WindowFold | WindowSelection | None = None
    if not loop.guards:
        found = _selection(spec, loop.body) or fold_of(spec, loop.body)
    if found is None:
        return None
    parts = (found.rank,) if isinstance(found, WindowSelection) else (found.first, found.folded)
    names = {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
    return found if names <= {"value", HELD, "min", "max"} else None


def fold_of(spec: specs.WindowSpec, body: f.Lines) -> WindowFold | None:
    """The fold in a loop that adds records to windows; None if it is more than two expressions."""
    found = _update(body)
    if found is None:
        return None
    choice, rest = found
    first, folded = _value(choice.body, _tuples(body)), _value(choice.orelse or rest, {})
    if first is None or folded is None:
        return None
    return WindowFold(_pace(spec), first, folded, is_reduce=bool(choice.orelse))


def _selection(spec: specs.WindowSpec, body: f.Lines) -> WindowSelection | None:
    """The selection in a loop that adds records to windows."""
    found = _update(body)
    if found is None:
        return None
    choice, rest = found
    if not choice.orelse:
        return selection_of(_pace(spec), choice.body, rest)
    if [text_of(item) for item in choice.body] != [f"{HELD} = value"]:
        return None
    return selection_of(_pace(spec), [], choice.orelse)


def _pace(spec: specs.WindowSpec) -> tuple[int, int, int]:
    pace: tuple[int, int, int] = spec.assigner.pace  # type: ignore[attr-defined]
    return pace


def _update(body: f.Lines) -> tuple[ast.If, f.Lines] | None:
    """The statements of a loop that change the contents of a window: if it is new, and afterwards.

    For a reduce, the second list is empty, because the `if` has both branches.
    """
    starts = [
        (block, place)
        for block in f.all_blocks(body)
        for place, item in enumerate(block)
        if isinstance(item, ast.Assign) and text_of(item) == f"{HELD} = pane_0.get(key_0)"
    ]
    if len(starts) != 1:
        return None
    ((block, place),) = starts
    choice, *rest = block[place + 1 :]
    if not isinstance(choice, ast.If) or text_of(choice.test) != f"{HELD} is None" or not rest:
        return None
    if text_of(rest.pop()) != f"pane_0[key_0] = {HELD}" or (choice.orelse and rest):
        return None
    return choice, rest


def _tuples(block: f.Lines) -> dict[str, ast.expr]:
    """The variables that are set once, to a tuple display: records with known fields."""
    times, found = f.stores(block), f.assignments(block)
    return {
        name: value for name, value in found if isinstance(value, ast.Tuple) and times[name] == 1
    }


def _value(block: f.Lines, known: dict[str, ast.expr]) -> ast.expr | None:
    """The expression to which statements without branches set `HELD`, in terms of its previous value."""
    for statement in block:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        (target,) = statement.targets
        value = f.replaced(statement.value, known)
        if isinstance(target, ast.Name):
            known[target.id] = value
        elif isinstance(target, ast.Tuple) and all(isinstance(n, ast.Name) for n in target.elts):
            for place, item in enumerate(target.elts):
                part = ast.Subscript(value, ast.Constant(place), ast.Load())
                known[item.id] = part  # type: ignore[attr-defined]
        else:
            return None
    return known.get(HELD)


def _is_int(node: ast.expr) -> bool:
    """Whether an expression is an int constant."""
    return is_literal(node) and type(ast.literal_eval(node)) is int


def combined_with(folded: ast.expr, old: str) -> tuple[str, ast.expr | None]:
    """The kind of a fold, "sum", "min" or "max", and the other operand. None if an expression does not combine the old value with another."""
    kind = "sum"
    match folded:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            both = [left, right]
        case ast.Call(func=ast.Name(id="max" | "min" as kind), args=both, keywords=[]):
            pass
        case ast.IfExp(
            test=ast.Compare(left=left, ops=[op], comparators=[right]), body=one, orelse=other
        ) if isinstance(op, _ORDERS) and {*map(text_of, (left, right))} == {
            *map(text_of, (one, other))
        }:
            both = [one, other]
            takes_left = text_of(one) == text_of(left)
            kind = "min" if takes_left == isinstance(op, (ast.Lt, ast.LtE)) else "max"
        case _:
            return kind, None
    others = [item for item in both if text_of(item) != old]
    is_pair = len(both) == 2 and len(others) == 1  # noqa: PLR2004 - a pair
    return kind, others[0] if is_pair else None
