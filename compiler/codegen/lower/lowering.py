"""The functions of a vertex, and how a record goes from an operator to its readers."""

from __future__ import annotations

import ast
import builtins
from collections import deque
from dataclasses import dataclass, replace
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.function_source import literal_arguments, plain_function
from opchain.compiler.codegen.static_types import ColumnsOf, CombinedOf, JsonOf, records_of
from opchain.runtime.errors import one_line_name
from opchain.runtime.functions.co_grouping import InputTagger, UnionKeySelector
from opchain.runtime.functions.function import may_use_state
from opchain.runtime.functions.key_selectors import NullByteKeySelector
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.program.vertex_program import (
    FIRST_OUTPUT,
    KeyProgram,
    OperatorProgram,
    OutputProgram,
    VertexProgram,
)
from opchain.runtime.records.record_copy import EMITS_STATE, PASSES_REFERENCES
from opchain.runtime.task.generated_code import side_tags
from opchain.runtime.types.coders import record_converter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opchain.compiler.codegen.names import Names

    Lower = Callable[["Lowering", Any, "Place", int], "f.Lines"]


DEEPEST = 12
"""Loops within each other after which the rest of a chain moves into a function of its own."""

LONGEST = 60
"""Operators in one function."""

_TAGGING = (
    specs.MapSpec,
    specs.FilterSpec,
    specs.FlatMapSpec,
    specs.CoMapSpec,
    specs.CoFlatMapSpec,
    specs.ReduceSpec,
    specs.CombinedReduceSpec,
)
"""Operators whose results may be (tag, value) pairs: where a side output is read, they are called as objects."""


@dataclass(frozen=True, slots=True)
class Place:
    """The variables of a record, and the position of its code in the function.

    `timestamp` is None where records carry none. `is_shared` says that the function that made the record may
    hold it, too. `in_batch` says that the function loops over a batch.
    """

    value: str
    timestamp: str | None
    in_batch: bool
    is_shared: bool = False
    loops: int = 1
    operators: int = 0

    @property
    def record(self) -> ast.Name:
        """The record."""
        return f.name(self.value)

    @property
    def time(self) -> ast.expr | None:
        """The timestamp."""
        return None if self.timestamp is None else f.name(self.timestamp)


class ChainTree:
    """The readers of each operator: chained operators, and exchanges with their numbers."""

    def __init__(self, program: VertexProgram) -> None:
        self._children: dict[tuple[int, str | None], list[OperatorProgram]] = {}
        for operator in program.operators:
            self._children.setdefault((operator.parent, operator.tag), []).append(operator)
        self._outputs: dict[tuple[int, str | None], list[tuple[int, OutputProgram]]] = {}
        for number, output in enumerate(program.outputs):
            self._outputs.setdefault((output.operator, output.tag), []).append((number, output))

    def children(self, operator: OperatorProgram, tag: str | None = None) -> list[OperatorProgram]:
        """The chained operators that read an operator's main output, or a side output."""
        return self._children.get((operator.index, tag), [])

    def outputs(
        self, operator: OperatorProgram, tag: str | None = None
    ) -> list[tuple[int, OutputProgram]]:
        """The exchanges that read an operator's main output, or a side output."""
        return self._outputs.get((operator.index, tag), [])

    def times_are_read(self, operator: OperatorProgram) -> bool:
        """Whether a reader of an operator's main output needs timestamps."""
        return any(child.timestamps for child in self.children(operator)) or any(
            output.carries_timestamps for _, output in self.outputs(operator)
        )


class _OperatorCode(ast.NodeTransformer):
    """Puts names and parts into the text of `Lowering.code`."""

    def __init__(self, names: Names, index: int, parts: Mapping[str, ast.expr | f.Lines]) -> None:
        self._names = names
        self._index = index
        self._parts = parts

    def visit_Expr(self, node: ast.Expr) -> ast.AST | f.Lines:
        part = self._parts.get(node.value.id) if isinstance(node.value, ast.Name) else None
        return part if isinstance(part, list) else self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not (isinstance(node.value, ast.Name) and node.value.id == "op"):
            return self.generic_visit(node)
        own = f"{node.attr}_{self._index}"
        return f.name(self._names.bind(own, "attribute", self._index, node.attr))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._parts:
            if node.id.isupper():
                self._names.bind(node.id, "shared")
            elif not hasattr(builtins, node.id):
                return ast.Name(f"{node.id}_{self._index}", node.ctx)
            return node
        part = self._parts[node.id]
        assert isinstance(part, ast.expr)
        return f.copied(part)


class Lowering:
    """Fills a form with functions. `lowerings` has the function that lowers each kind of operator.

    Any other operator is called as an object (`call`).
    """

    def __init__(self, form: f.Form, lowerings: Mapping[type[specs.OperatorSpec], Lower]) -> None:
        self.form = form
        self._lowerings = lowerings
        self.program: VertexProgram = form.program
        self.names = form.names
        self.tree = ChainTree(form.program)
        self.copies = not form.program.object_reuse
        self._todo: deque[Callable[[], None]] = deque()
        self._known: set[str] = set()
        self.function: f.Function

    def code(
        self, operator: OperatorProgram, place: Place, text: str, **parts: ast.expr | f.Lines
    ) -> f.Lines:
        """Statements of an operator, written like a method of its class.

        `value` and `time` are those of the record, `op.pane_for` is the operator's attribute, and names in capitals are shared by
        all operators. All other names are variables of this operator, unless `parts` has an expression or a block for them.
        """
        parts = {"value": place.record, "time": place.time or ast.Constant(None), **parts}
        written = _OperatorCode(self.names, operator.index, parts).visit(ast.parse(cleandoc(text)))
        return f.marked(written.body, operator.index)

    def vertex(self) -> None:
        """Adds the functions of the vertex."""
        head = self.program.operators[0]
        for number in range(max(1, len(head.keys))):
            self._batch_function(number, head)
        while self._todo:
            self._todo.popleft()()

    def open_function(self, name: str, arguments: str, about: str, *, is_batch: bool) -> f.Function:
        """Adds a function, whose body is lowered next."""
        self.function = f.Function(name, arguments, about, [], is_batch)
        self.form.functions.append(self.function)
        return self.function

    def _batch_function(self, number: int, head: OperatorProgram) -> None:
        received = self.form.received.get(number) or records_of(head.spec)
        known = received.type
        function = self.open_function(
            f"process_{number}",
            "values, timestamps" if head.timestamps else "values",
            self.program.name,
            is_batch=True,
        )
        if isinstance(known, ColumnsOf):
            function.types["values"] = known
            known = known.record if known.shape is None else None
        if isinstance(known, (CombinedOf, JsonOf)):
            function.types["values"], known = known, None
        function.types["value"] = known
        function.fresh.add("value")
        place = Place("value", "timestamp" if head.timestamps else None, in_batch=True)
        key = head.keys[number] if number < len(head.keys) else None
        taken: f.Lines = []
        if key is not None and key.is_carried:
            taken = f.statements(f"{self._carried_key(head, number)}, record = value", head.index)
            place = replace(place, value="record")
        body = [*taken, *self.operator(head, place, number)]
        if body:
            function.body = [loop_over(body, has_timestamps=head.timestamps)]
        if not received.is_certain:
            f.add_fallback(self.form, function).types = {}
            self.names.bind("Columns", "shared")
            function.guards.append(f.expression("values.__class__ is Columns"))

    def add_emit_function(self, operator: OperatorProgram) -> None:
        """Generates a function for everything downstream of an operator's main output."""
        self.later(f"emit_{operator.index}", lambda: self._emit_function(operator, None))

    def emit_sides(self, operator: OperatorProgram) -> bool:
        """Generates a function for each side output that has a reader. Returns whether there is one."""
        tags = side_tags(self.program, operator.index)
        for number, tag in enumerate(tags):
            self.later(
                f"emit_{operator.index}_{number}",
                lambda tag=tag, number=number: self._emit_function(operator, tag, f"_{number}"),  # type: ignore[misc]
            )
        return bool(tags)

    def emit_batches(self, operator: OperatorProgram) -> None:
        """Generates a function that processes the results of an operator in batches."""
        self.later(f"batch_{operator.index}", lambda: self._results_function(operator))

    def later(self, name: str, write: Callable[[], None]) -> None:
        """Lowers another function after the current one, unless it is known."""
        if name not in self._known:
            self._known.add(name)
            self._todo.append(write)

    def _emit_function(self, operator: OperatorProgram, tag: str | None, suffix: str = "") -> None:
        about = f"Emitted by '{operator.name}' outside its function" + (
            f", to '{tag}'" if tag else ""
        )
        function = self.open_function(
            f"emit_{operator.index}{suffix}", "value, timestamp", about, is_batch=False
        )
        place = Place("value", "timestamp", in_batch=False, is_shared=True, loops=0)
        lines, place = self.out_of_state(operator, place, tag)
        function.body = [*lines, *self.downstream(operator, place, tag)]

    def _run_function(self, operator: OperatorProgram) -> None:
        function = self.open_function(
            f"run_{operator.index}",
            "value, timestamp",
            f"From '{operator.name}' on",
            is_batch=False,
        )
        place = Place("value", "timestamp", in_batch=False, is_shared=True, loops=0)
        function.body = self.operator(operator, place, 0)

    def _results_function(self, operator: OperatorProgram) -> None:
        """The loop over the results of a batch, which the operator itself has counted.

        Downstream operators that collect batches also get the other batches that the call yields, before the chain flushes
        them.
        """
        name, about = f"batch_{operator.index}", f"Results of '{operator.name}' for a batch"
        function = self.open_function(name, "values, timestamps", about, is_batch=True)
        has_times = self.tree.times_are_read(operator)
        place = Place("value", "timestamp" if has_times else None, in_batch=True, is_shared=True)
        body = self.readers(operator, place, None)
        if body:
            function.body = [loop_over(body, has_timestamps=has_times)]

    def emits_fired(self, operator: OperatorProgram, place: Place, call: ast.expr) -> f.Lines:
        """Emits what a function returns when it fires. If only exchanges read the results, this code sends them."""
        self.add_emit_function(operator)
        is_sent = not self.tree.children(operator) and all(
            output.combine is None for _, output in self.tree.outputs(operator)
        )
        return self.emits_results(operator, place, call, calls_emit=not is_sent)

    def operator(self, operator: OperatorProgram, place: Place, number: int) -> f.Lines:
        """The code of an operator for a record, and of all operators downstream of it."""
        if place.loops > DEEPEST or place.operators > LONGEST:
            self.later(f"run_{operator.index}", lambda: self._run_function(operator))
            call = f"run_{operator.index}({place.value}, {place.timestamp})"
            return f.statements(call, operator.index)
        place = replace(place, operators=place.operators + 1)
        self.names.bind(f"op_{operator.index}", "operator", operator.index)
        lines = self._counted(operator, "records_in")
        if operator.spec.kind not in PASSES_REFERENCES:
            lines += self.keep(place, operator)
            place = replace(place, is_shared=False)
        lower = self._lowerings.get(type(operator.spec), Lowering.call)
        if isinstance(operator.spec, _TAGGING) and side_tags(self.program, operator.index):
            lower = Lowering.call
        return [*lines, *lower(self, operator, place, number)]

    def _counted(self, operator: OperatorProgram, what: str) -> f.Lines:
        return f.marked([f.made(f.Count, what=what)], operator.index)

    def keep(self, place: Place, operator: OperatorProgram) -> f.Lines:
        """Copies a record if the function that emitted it may still have a reference to it."""
        if not (place.is_shared and self.copies):
            return []
        return f.marked([f.made(f.CopyIfMutable, target=f.target(place.value))], operator.index)

    def out_of_state(
        self, operator: OperatorProgram, place: Place, tag: str | None = None
    ) -> tuple[f.Lines, Place]:
        """A copy of a record that may be in the operator's state, for functions downstream that may change it."""
        children = self.tree.children(operator, tag)
        if operator.spec.kind not in EMITS_STATE or all(
            child.spec.kind not in PASSES_REFERENCES for child in children
        ):
            return [], place
        kept: f.Lines = [
            f.made(f.CopyIfMutable, target=f.target(place.value), is_stored=True)
        ] * self.copies
        return f.marked(kept, operator.index), replace(place, is_shared=False)

    def downstream(
        self, operator: OperatorProgram, place: Place, tag: str | None = None
    ) -> f.Lines:
        """Counts a record that an operator emits, and passes it to all readers."""
        return [*self._counted(operator, "records_out"), *self.readers(operator, place, tag)]

    def readers(self, operator: OperatorProgram, place: Place, tag: str | None) -> f.Lines:
        """Passes a record to exchanges and chained operators, in Flink's order. All but the last get a copy."""
        lines: f.Lines = []
        if tag is None and operator.record_type is not None:
            index = operator.index
            convert = self.names.bind(f"as_declared_{index}", "attribute", index, "as_declared")
            lines.append(self._declared(operator, place, f"row_{index}", convert))
            place = replace(place, value=f"row_{index}")
        todo: list[tuple[Callable[[Place], f.Lines], str]] = [
            (lambda at, n=number, o=output: self.send(operator, n, o, at), f"to_{number}")  # type: ignore[misc]
            for number, output in self.tree.outputs(operator, tag)
        ]
        todo += [
            (lambda at, c=child: self.operator(c, at, 0), f"for_{child.index}")  # type: ignore[misc]
            for child in self.tree.children(operator, tag)
        ]
        for position, (write, where) in enumerate(todo):
            is_last = position + 1 == len(todo)
            if is_last or not self.copies:
                lines += write(place)
                continue
            copied = f"{place.value}_{where}"
            copies = f.let(copied, place.record, operator.index)
            kept = f.made(f.CopyIfMutable, target=f.target(copied))
            for each in (copies, kept):
                notes.is_fork.set(each, True)
            lines += f.marked([copies, kept], operator.index)
            lines += write(replace(place, value=copied, is_shared=False))
        return lines

    def _declared(
        self,
        operator: OperatorProgram,
        place: Place,
        row: str,
        convert: str,
        tag: str | None = None,
    ) -> ast.stmt:
        declare = f.made(
            f.Convert, target=f.target(row), value=place.record, convert=convert, tag=tag
        )
        return f.marked([declare], operator.index)[0]

    def send(
        self, operator: OperatorProgram, number: int, output: OutputProgram, place: Place
    ) -> f.Lines:
        """Passes a record to an exchange, or first combines it with other records of its key (batch mode)."""
        lines = self.keep(place, operator)
        label = one_line_name(output.label)
        if output.combine is not None:
            return [*lines, *self._combine(number, output, place, f"-> {label}, combined here")]
        key = None
        if output.key is not None:
            key = self._key_call(
                output.key, f"to_{number}", ("output_key", number), place, operator
            )
        self.names.bind(f"keys_{number}", "keys", number)
        self.names.bind(f"values_{number}", "values", number)
        self.names.bind(f"timestamps_{number}", "timestamps", number)
        time = (place.time or ast.Constant(None)) if output.carries_timestamps else None
        value: ast.expr = place.record
        if output.carries_key:
            assert key is not None
            name = f"sent_key_{number}"
            text = f"sends the key of '{output.key.name}', which may differ in a second call"  # type: ignore[union-attr]
            self.form.remark(operator.index, text)
            lines.append(f.let(name, key, FIRST_OUTPUT - number))
            key, value = f.name(name), ast.Tuple([f.name(name), place.record], ast.Load())
        sent = f.made(f.Send, number=number, value=value, key=key, time=time)
        return [*lines, *f.with_comment(f.marked([sent], operator.index), f"-> {label}")]

    def _combine(self, number: int, output: OutputProgram, place: Place, comment: str) -> f.Lines:
        assert output.key is not None
        where = FIRST_OUTPUT - number
        key, previous = f"key_{number}", f"sum_{number}"
        selected = self._key_call(output.key, f"to_{number}", ("output_key", number), place)
        self.names.bind(f"combined_{number}", "combined", number)
        name = self.names.bind_function(output.combine, "reduce", f"to_{number}", "combine", number)
        fold = f.made(
            f.Fold,
            table=f"combined_{number}",
            previous=previous,
            key=f.name(key),
            value=place.record,
            first=self.first_of(
                output.combine, f"first_to_{number}", ("combine_first", number), place.record
            ),
            reduced=self.call_of(name, output.combine, "reduce", f.name(previous), place.record),
            target=None,
        )
        plain = self.names.bind(f"plain_keys_to_{number}", "output_plain_keys", number)
        identify = self.names.bind(f"identify_to_{number}", "output_identify", number)
        lines = [f.let(key, selected, where), identified(key, plain, identify), fold]
        return f.with_comment(f.marked(lines, where), comment)

    def first_of(
        self, function: Any, name: str, path: tuple[Any, ...], record: ast.expr
    ) -> ast.expr | None:
        """The call that checks and returns the first record of a key; None if the function has no such check."""
        if not hasattr(function, "first"):
            return None
        return ast.Call(f.name(self.names.bind(name, *path)), [record], [])

    def call_of(
        self, name: str, function: Any, method: str, *arguments: ast.expr, owner: str | None = None
    ) -> ast.Call:
        """The call of a user's function by its name, which rules may look into."""
        plain, instance = plain_function(function, method)
        if (getattr(plain, "__module__", "") or "").startswith("opchain.runtime."):
            self.form.aggregations[name] = instance
            return ast.Call(f.name(name), list(arguments), [])
        path = self.names.bindings[name]
        given = literal_arguments(plain)
        if given is not None:
            operator = name.rpartition("_")[2]
            name = self.names.bind_function(
                plain.func, method, operator, "attribute_of", path, "func"
            )
            call = self.call_of(name, plain.func, method, *given[0], *arguments)
            call.keywords = given[1]
            return call
        if instance is not None and instance is not function:  # a bound method
            owner = self.names.bind(f"self_of_{name}", "owner_of", path)
            if isinstance(instance, type):
                self.form.constants[owner] = instance
        self.form.callees[name] = f.Callee(plain, path, owner, instance)
        return ast.Call(f.name(name), list(arguments), [])

    def _key_call(
        self,
        key: KeyProgram,
        where: str,
        path: tuple[Any, ...],
        place: Place,
        sender: OperatorProgram | None = None,
    ) -> ast.expr:
        selector: Any = key.selector
        record: ast.expr = place.record
        tagger = None if sender is None else getattr(sender.spec, "function", None)
        owner = getattr(selector, "__self__", selector)
        if type(owner) is NullByteKeySelector:
            return ast.Constant(0)
        if type(tagger) is InputTagger and type(owner) is UnionKeySelector:
            selector = getattr(owner, tagger.of_number).get_key
            path = ("attribute_of", ("owner_of", path), f"{tagger.of_number}.get_key")
            record = f.expression("record[1]", record=place.record)
        name = self.names.bind_function(selector, "key", where, *path)
        return self.call_of(name, selector, "get_key", record)

    def _carried_key(self, operator: OperatorProgram, number: int) -> str:
        """The key that came with the current record of input `number`, as text."""
        return self.names.bind(f"carried_{number}", "key", operator.index, number) + ".key"

    def key_of(self, operator: OperatorProgram, place: Place, number: int) -> ast.expr:
        """The key of a record of input `number`."""
        key = operator.keys[number]
        assert key is not None
        if key.is_carried:
            return f.expression(self._carried_key(operator, number))
        where = f"of_{operator.index}" + (f"_{number + 1}" if number else "")
        return self._key_call(key, where, ("key", operator.index, number), place)

    def applied(self, operator: OperatorProgram, method: str, *arguments: ast.expr) -> ast.expr:
        """The call of a method of the operator's function."""
        function, index = function_of(operator), operator.index
        digit = method[-1] if method[-1].isdigit() else ""
        name = self.names.function(function, f"{operator.spec.kind}{digit}", index)
        name = f"{name}_{digit}" if digit else name
        self.names.bind(name, "method", index, method)
        owner = self.names.bind(f"self_{index}", "function", index)
        return self.call_of(name, function, method, *arguments, owner=owner)

    def set_key(self, operator: OperatorProgram, place: Place, number: int = 0) -> f.Lines:
        """Makes the record's key the current one."""
        index = operator.index
        self.names.bind(f"set_key_{index}", "set_key", index)
        selected = self.key_of(operator, place, number)
        return self.code(operator, place, "key = selected; set_key(key)", selected=selected)

    def set_key_of_rich(self, operator: OperatorProgram, place: Place, number: int = 0) -> f.Lines:
        """On a keyed stream a function may use keyed state: its key is set before each call."""
        if not operator.keys or operator.keys[number] is None:
            return []
        is_needed = may_use_state(function_of(operator))
        return self.set_key(operator, place, number) if is_needed else []

    def emits(
        self,
        operator: OperatorProgram,
        place: Place,
        iterable: ast.expr,
        *,
        nullable: bool = False,
        side: f.Lines | None = None,
        by_tag: dict[str, tuple[str, f.Lines]] | None = None,
        body: f.Lines | None = None,
    ) -> f.Lines:
        """A loop over the results for one record. `body` is the code for each, else the code downstream."""
        result = f"value_{operator.index}"
        if body is None:
            inner = replace(place, value=result, is_shared=True, loops=place.loops + 1)
            body = self.downstream(operator, inner)
        emits = f.made(
            f.ForEachResult,
            target=f.target(result),
            iterable=iterable,
            body=body,
            side=side,
            by_tag=by_tag or {},
            nullable=nullable,
        )
        return f.with_comment(f.marked([emits], operator.index), comment(operator))

    def emits_results(
        self, operator: OperatorProgram, place: Place, call: ast.expr, *, calls_emit: bool
    ) -> f.Lines:
        """Emits the results of a function, as `emit_results` does. With `calls_emit`, calls `emit_I` for each."""
        index = operator.index
        side: f.Lines = []
        self.names.bind("is_tagged", "shared")
        if self.emit_sides(operator):
            name = self.names.bind(f"emit_side_{index}", "collect_tagged", index)
            side = f.statements(f"{name}(value_{index}, {place.timestamp})", index)
        body, by_tag = None, {}
        if calls_emit:
            body = f.statements(f"emit_{index}(value_{index}, {place.timestamp})", index)
            self.add_emit_function(operator)
        elif place.in_batch:
            by_tag = self._by_tag(operator, place)
        return self.emits(operator, place, call, nullable=True, side=side, by_tag=by_tag, body=body)

    def _by_tag(self, operator: OperatorProgram, place: Place) -> dict[str, tuple[str, f.Lines]]:
        """The code downstream of each side output, for records whose tag is known at compile time."""
        index, found = operator.index, {}
        types = dict(operator.side_types)
        for number, tag in enumerate(side_tags(self.program, index)):
            value = f"value_{index}_{number}"
            inner = replace(
                place, value=value, in_batch=False, is_shared=True, loops=place.loops + 1
            )
            lines, inner = self.out_of_state(operator, inner, tag)
            if record_converter(types.get(tag)) is not None:
                convert = self.names.bind(f"as_tagged_{index}_{number}", "as_tagged", index, tag)
                lines.append(self._declared(operator, inner, f"row_{index}_{number}", convert, tag))
                inner = replace(inner, value=f"row_{index}_{number}")
            found[tag] = value, [*lines, *self.downstream(operator, inner, tag)]
        return found

    def call(self, operator: OperatorProgram, place: Place, number: int) -> f.Lines:
        """Calls an operator that emits outside record processing. Everything downstream of it is a separate function."""
        index = operator.index
        name = self.names.bind(f"{operator.spec.kind}_{index}_{number}", "process", index, number)
        self.add_emit_function(operator)
        self.emit_sides(operator)
        lines = f.statements(f"{name}({place.value}, {place.timestamp})", index)
        return f.with_comment(lines, comment(operator))


def function_of(operator: OperatorProgram) -> Any:
    """The user's function."""
    return operator.spec.function  # type: ignore[attr-defined]


def comment(operator: OperatorProgram) -> str:
    """The comment at the first line of an operator."""
    return f"{operator.index} {one_line_name(operator.name)} ({one_line_name(operator.call_site)})"


def identified(key: str, plain: str, identify: str) -> ast.stmt:
    """Replaces a key of an unusual class by its state key (see key_identity.py)."""
    text = f"if {key}.__class__ not in {plain}:\n    {key} = {identify}({key})"
    return ast.parse(text).body[0]


def loop_over(body: f.Lines, *, has_timestamps: bool) -> ast.For:
    """The loop over a batch."""
    each = "value, timestamp in zip(values, timestamps)" if has_timestamps else "value in values"
    (loop,) = ast.parse(f"for {each}:\n    pass").body
    assert isinstance(loop, ast.For)
    loop.body = body
    return loop
