"""Arithmetic on whole numbers from a number sequence runs on numpy arrays, a batch at a time.

>>> change("use_arrays", lambda numbers: numbers.map(lambda x: (x % 7, x)).filter(lambda row: row[0] > 3))
- before_column_0_0 = len(column_0_0)
- for value in values:
-   item_1_0 = value % 7
-   if not (item_1_0 > 3):
-     continue
-   column_0_0.append(item_1_0)
-   column_0_1.append(value)
+ if (value := numbers_of(values)) is None:
+   return loop_0(values)
+ item_1_0 = value % 7
+ keep_2 = item_1_0 > 3
+ value = value[keep_2]
+ item_1_0 = item_1_0[keep_2]
+ column_0_0.frombytes(item_1_0.tobytes())
+ column_0_1.frombytes(value.tobytes())

Expressions are sums, differences, products, remainders and quotients by a positive constant, bits, and comparisons. The
bounds of a sequence are known, so it is known that nothing overflows 64 bits: an expression that might stays in the
loop. An attribute of a function that a loop only adds to gets the sum. Numbers that a generator yields at several places
become one array.

A batch goes through the loop if numpy is missing, or if an attribute is not an int or is computed.
"""

from __future__ import annotations

import ast
from functools import reduce
from typing import Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.source_text import text_of
from opchain.runtime.connectors.collection import NumberSequenceSource
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.program.vertex_program import NO_OPERATOR

Bounds = tuple[int, int]

_LIMIT = 1 << 62
"""The limit for values of an expression and for sums of a batch, far below 64 bits."""

_MOST_IN_A_BATCH = 1 << 20


class _Loop(Exception):  # noqa: N818 - not an error: the loop stays
    """Why a loop cannot run on arrays."""


def use_arrays(form: f.Form) -> None:
    """Writes a function over arrays for a source of numbers. Its loop processes the batches that do not match."""
    spec = form.program.operators[0].spec
    if not isinstance(spec, specs.SourceSpec) or type(spec.source) is not NumberSequenceSource:
        return
    function = next(item for item in form.functions if item.name == "process_0")
    if len(function.body) != 1 or not isinstance(function.body[0], ast.For) or function.before:
        return
    loop = function.body[0]
    if not isinstance(loop.target, ast.Name) or form.program.batch_size > _MOST_IN_A_BATCH:
        return
    arrays = _Arrays(form, form.program.batch_size)
    try:
        arrays.bounds["value"] = _within(spec.source.start, spec.source.end)
        arrays.block(f.copied(loop.body))
    except _Loop as reason:
        form.remark(0, f"not on arrays: {reason}")
        return
    for column in arrays.columns:
        form.names.bind_array(column)
    name = form.names.bind("numbers_of", "numbers_of")
    guards = [f.expression(f"(value := {name}(values)) is not None")]
    for owner, attributes in sorted(arrays.attributes.items()):
        form.names.bind("has_plain", "has_plain")
        guards.append(f.expression(f"has_plain({owner}, {tuple(sorted(attributes))!r}, ())"))
    vector = f.Function(function.name, function.arguments, function.about, arrays.lines)
    vector.guards = [*function.guards, *guards]
    vector.fallback = function.name = "loop_0"
    form.functions.insert(form.functions.index(function), vector)
    for index, (came, went) in sorted(arrays.counts.items()):
        vector.after += f.statements(f"op_{index}.count({came}, {went})", NO_OPERATOR)
    form.remark(0, "runs on arrays")


class _Arrays:
    def __init__(self, form: f.Form, most: int) -> None:
        self.form = form
        self.most = most
        self.bounds: dict[str, Bounds] = {}
        self.arrays = {"value"}  # the other variables with bounds are constants
        self.lines: f.Lines = []
        self.attributes: dict[str, set[str]] = {}
        self.counts: dict[int, list[str]] = {}
        self.columns: list[str] = []
        self.number = "len(values)"
        self._seen: set[Any] = set()

    def block(self, block: f.Lines) -> None:
        """Writes the statements of a block, whose records are the entries of all arrays."""
        block = _gathered(block)
        for position, statement in enumerate(block):
            is_last = position + 1 == len(block)
            operator = notes.operator(statement)
            if isinstance(statement, f.Count):
                counted = self.counts.setdefault(operator, ["0", "0"])
                self._once((operator, statement.what))
                counted[statement.what == "records_out"] = self.number
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                self._set(statement.targets[0].id, statement.value)
                self.lines.append(statement)
            elif isinstance(statement, ast.If) and not statement.orelse and is_last:
                self._guard(statement)
            elif isinstance(statement, f.ForEachResult) and is_last and not statement.nullable:
                self._emits(statement)
            elif isinstance(statement, f.Append):
                self._once(statement.list)
                if not self._is_array(statement.value):
                    raise _Loop("a record or its key is a constant")
                self.bounds_of(statement.value)
                values, append = text_of(statement.value), "extend(({}).tolist())"
                if self._can_be_array(statement.list):
                    self.columns.append(statement.list)
                    append = "frombytes(({}).tobytes())"
                text = f"{statement.list}.{append.format(values)}"
                line = f.statements(text, operator)
                self.lines += f.with_comment(line, notes.comment(statement))
            elif isinstance(statement, ast.AugAssign):
                self._added(statement)
            else:
                raise _Loop(
                    f"{type(statement).__name__.lower()} statements are run for each record"
                )

    def _set(self, name: str, value: ast.expr) -> None:
        self.bounds[name] = self.bounds_of(value)
        if self._is_array(value):
            self.arrays.add(name)
        else:
            self.arrays.discard(name)

    def _can_be_array(self, name: str) -> bool:
        """Whether only this function appends to a list, and it may be an array."""
        appending = [
            function
            for function in self.form.functions
            if any(
                isinstance(item, f.Append) and item.list == name
                for item in f.all_statements(function.body)
            )
        ]
        return self.form.names.can_be_array(name) and len(appending) == 1

    def _once(self, what: Any) -> None:
        """A function that emits at two places does so alternately, record by record."""
        if what in self._seen:
            raise _Loop("a flat map emits at more than one place; yield from a tuple instead")
        self._seen.add(what)

    def _guard(self, statement: ast.If) -> None:
        operator = notes.operator(statement)
        test = self._test(statement.test)
        keep = f"keep_{operator}"
        self.lines += f.with_comment([f.let(keep, test, operator)], notes.comment(statement))
        self._select(statement.body, keep, operator)
        self.block(statement.body)

    def _select(self, body: f.Lines, keep: str, operator: int) -> None:
        """Filters the arrays that a body reads to the records that reach it."""
        arrays = [name for name in self.bounds if name in self.arrays]
        read = [name for name in arrays if any(f.reads(item, name) for item in body)]
        for name in read:
            self.lines += f.statements(f"{name} = {name}[{keep}]", operator)
        for name in set(arrays) - set(read):
            del self.bounds[name]
        self.arrays = set(read)
        self.number = f"count_{operator}"
        count = f"len({read[0]})" if read else f"int({keep}.sum())"
        self.lines += f.statements(f"{self.number} = {count}", operator)

    def _emits(self, statement: f.ForEachResult) -> None:
        display, operator = statement.iterable, notes.operator(statement)
        if not isinstance(display, (ast.Tuple, ast.List)) or statement.side is not None:
            raise _Loop("a flat map emits something other than a tuple of numbers")
        bounds = [self.bounds_of(item) for item in display.elts]
        if not bounds or not all(self._is_array(item) for item in display.elts):
            raise _Loop("a flat map emits constants")
        name = self.form.names.bind("interleaved", "interleaved")
        call = ast.Call(f.name(name), list(display.elts), [])
        target = statement.target.id
        others = [
            other for other in self.bounds if any(f.reads(item, other) for item in statement.body)
        ]
        if others:
            raise _Loop("a function reads records from before and after a flat map")
        made = f.let(target, call, operator)
        self.lines += f.with_comment([made], notes.comment(statement))
        self.bounds = {target: (min(low for low, _ in bounds), max(high for _, high in bounds))}
        self.arrays = {target}
        self.most *= len(bounds)
        self.number = f"count_{operator}"
        self.lines += f.statements(f"count_{operator} = len({target})", operator)
        self.block(statement.body)

    def _added(self, statement: ast.AugAssign) -> None:
        """Replaces `self.total += x` per record by one sum."""
        match statement:
            case ast.AugAssign(
                target=ast.Attribute(value=ast.Name(id=owner), attr=attribute) as target,
                op=ast.Add(),
            ):
                self.attributes.setdefault(owner, set()).add(attribute)
            case _:
                raise _Loop("a variable is changed for each record")
        low, high = self.bounds_of(statement.value)
        if max(abs(low), abs(high)) * self.most >= _LIMIT:
            raise _Loop("a sum may have more than 64 bits")
        if self._is_array(statement.value):
            value = f"int(({text_of(statement.value)}).sum())"
        else:
            value = f"{text_of(statement.value)} * {self.number}"
            value = self.number if value.startswith("1 * ") else value
        text = f"{text_of(target)} += {value}"
        lines = f.statements(text, notes.operator(statement))
        self.lines += f.with_comment(lines, notes.comment(statement))

    def _is_array(self, node: ast.expr) -> bool:
        return any(isinstance(item, ast.Name) and item.id in self.arrays for item in ast.walk(node))

    def _test(self, node: ast.expr) -> ast.expr:
        """A condition as an array of bools."""
        match node:
            case ast.BoolOp(op=op, values=values):
                both = ast.BitAnd() if isinstance(op, ast.And) else ast.BitOr()
                return reduce(
                    lambda one, other: ast.BinOp(one, both, other), map(self._test, values)
                )
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ast.UnaryOp(ast.Invert(), self._test(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if self._is_array(node):
                if not isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
                    self.bounds_of(left)
                    self.bounds_of(right)
                    return node
        raise _Loop("a condition is not a comparison of numbers")

    def bounds_of(self, node: ast.expr) -> Bounds:
        """The minimum and maximum of an expression, which is an int for every record."""
        match node:
            case ast.Constant(value=value) if type(value) is int:
                return _within(value, value)
            case ast.Name(id=name) if name in self.bounds:
                return self.bounds[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                low, high = self.bounds_of(operand)
                return _within(-high, -low)
            case ast.BinOp(left=left, op=op, right=right):
                return _combined(op, self.bounds_of(left), self.bounds_of(right))
        raise _Loop(f"'{text_of(node)[:60]}' is not arithmetic on known ints")


def _gathered(block: f.Lines) -> f.Lines:
    """Replaces repeated statements at the end of a block by a loop over their values."""
    names = [*map(f.variable_set, block)]
    name = next((name for name in names if name and names.count(name) > 1), None)
    starts = [place for place, each in enumerate(names) if each == name]
    if name is None:
        return block
    ends = [*starts[1:], len(block)]
    bodies = [block[start + 1 : end] for start, end in zip(starts, ends, strict=True)]
    values = [block[start].value for start in starts]  # type: ignore[attr-defined]
    if any(_text(body) != _text(bodies[0]) for body in bodies) or any(
        f.reads(values, set_) for set_ in f.stores(block[starts[0] :])
    ):
        return block
    emits = f.made(
        f.ForEachResult,
        target=f.target(name),
        iterable=ast.Tuple(values, ast.Load()),
        side=None,
        body=bodies[0],
    )
    emits.nullable = False
    first = notes.operator(block[starts[0]])
    lines = f.with_comment(f.marked([emits], first), notes.comment(block[starts[0]]))
    return [*block[: starts[0]], *lines]


def _text(block: f.Lines) -> list[Any]:
    """A text of a block. It is equal for blocks that do the same."""
    return [
        (
            ast.dump(item),
            notes.operator(item),
            getattr(item, "list", None),
            getattr(item, "what", None),
        )
        for item in f.all_statements(block)
    ]


def _combined(op: ast.operator, left: Bounds, right: Bounds) -> Bounds:
    if isinstance(op, ast.Sub):
        op, right = ast.Add(), (-right[1], -right[0])
    if isinstance(op, ast.Add):
        return _within(left[0] + right[0], left[1] + right[1])
    if isinstance(op, ast.Mult):
        products = [a * b for a in left for b in right]
        return _within(min(products), max(products))
    constant = right[0] if right[0] == right[1] else 0
    if constant > 0:
        if isinstance(op, ast.Mod):
            return 0, constant - 1
        if isinstance(op, ast.FloorDiv):
            return left[0] // constant, left[1] // constant
        if isinstance(op, ast.BitAnd):
            return 0, constant
    if isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        most = 1 << max(bound.bit_length() for bound in (*left, *right))
        return _within(-most if min(*left, *right) < 0 else 0, most)
    raise _Loop(f"{type(op).__name__.lower()} is not written for arrays")


def _within(low: int, high: int) -> Bounds:
    if low <= -_LIMIT or high >= _LIMIT:
        raise _Loop("a number may have more than 64 bits")
    return low, high
