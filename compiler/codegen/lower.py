"""Translates operators to unoptimized code: one function for each operator kind.

Every function of the user's is called, every record counted, every key selected where it is needed. Rules
(compiler/codegen/rules) make this fast. A batch function looks like this:

    for value in values:
        op_1.records_in += 1
        value_1 = parse_1(value)
        op_1.records_out += 1
        if is_click_2(value_1):
            ...
            send(0, value_1, key=user_0(value_1))

An operator that emits outside record processing (timers, watermarks, end of input) is called as an object.
Everything downstream of it becomes a function `emit_I`, so the code of each operator appears once. If blocks would nest
too deeply for CPython, the rest of the chain becomes a function `run_I`. A function `fire_I` runs the
user's function on the keys of a window that fires, or its `on_timer` for the event-time timers that are due. It sends the
results itself if there are no operators downstream.
"""

from __future__ import annotations

import ast
import builtins
from collections import deque
from dataclasses import dataclass, replace
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.function_source import plain_function
from opchain.compiler.codegen.static_types import (
    ColumnsOf,
    CombinedOf,
    JsonOf,
    SentRecords,
    records_of,
)
from opchain.runtime.errors import one_line_name
from opchain.runtime.functions.co_grouping import InputTagger, UnionKeySelector
from opchain.runtime.functions.function import has_lifecycle, may_use_state
from opchain.runtime.functions.key_selectors import NullByteKeySelector
from opchain.runtime.functions.process_functions import has_on_timer
from opchain.runtime.functions.window import ProcessAllWindowFunction, ProcessWindowFunction
from opchain.runtime.operators.windows.aligned_window_operator import has_plain_windows, is_aligned
from opchain.runtime.operators.windows.session_window_operator import (
    adds_with_state,
    has_plain_sessions,
)
from opchain.runtime.operators.windows.window_operator import (
    has_plain_counts,
    has_plain_processing_time,
)
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.program.vertex_program import (
    FIRST_OUTPUT,
    NO_OPERATOR,
    KeyProgram,
    OperatorProgram,
    OutputProgram,
    VertexProgram,
)
from opchain.runtime.records.record_copy import EMITS_STATE, PASSES_REFERENCES
from opchain.runtime.task.generated_code import side_tags
from opchain.runtime.time import MAX_LONG_VALUE
from opchain.runtime.types.coders import record_converter
from opchain.runtime.watermarks.strategy import (
    BoundedOutOfOrderness,
    FunctionTimestampAssigner,
    MonotonousTimestamps,
    NoWatermarks,
    WatermarkStrategy,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opchain.compiler.codegen.form import Form
    from opchain.compiler.codegen.names import Names

    Lines = list[ast.stmt]


DEEPEST = 12
"""Loops within each other after which the rest of a chain moves into a function of its own."""

LONGEST = 60
"""Operators in one function."""

_PROCESS_WINDOW = (ProcessWindowFunction, ProcessAllWindowFunction)
_KEEP_THE_GREATEST = (BoundedOutOfOrderness, MonotonousTimestamps, NoWatermarks)


_WITH_TIMERS = (specs.KeyedProcessSpec, specs.KeyedCoProcessSpec, specs.KeyedBroadcastProcessSpec)
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


def lowered(form: Form) -> None:
    """Fills a form with the functions of its vertex."""
    _Lowering(form).vertex()


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
    """Puts names and parts into the text of `_Lowering.code`."""

    def __init__(self, names: Names, index: int, parts: Mapping[str, ast.expr | Lines]) -> None:
        self._names = names
        self._index = index
        self._parts = parts

    def visit_Expr(self, node: ast.Expr) -> ast.AST | Lines:
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


class _Lowering:
    def __init__(self, form: Form) -> None:
        self.form = form
        self.program: VertexProgram = form.program
        self.names = form.names
        self.tree = ChainTree(form.program)
        self.copies = not form.program.object_reuse
        self._todo: deque[Callable[[], None]] = deque()
        self._known: set[str] = set()
        self._function: f.Function

    def code(
        self, operator: OperatorProgram, place: Place, text: str, **parts: ast.expr | Lines
    ) -> Lines:
        """Statements of an operator, written like a method of its class.

        `value` and `time` are those of the record, `op.pane_for` is the operator's attribute, and names in capitals are shared by
        all operators. All other names are variables of this operator, unless `parts` has an expression or a block for them.
        """
        parts = {"value": place.record, "time": place.time or ast.Constant(None), **parts}
        written = _OperatorCode(self.names, operator.index, parts).visit(ast.parse(cleandoc(text)))
        return f.marked(written.body, operator.index)

    # Functions

    def vertex(self) -> None:
        head = self.program.operators[0]
        for number in range(max(1, len(head.keys))):
            self._batch_function(number, head)
        while self._todo:
            self._todo.popleft()()

    def _open(self, name: str, arguments: str, about: str, *, is_batch: bool) -> f.Function:
        self._function = f.Function(name, arguments, about, [], is_batch)
        self.form.functions.append(self._function)
        return self._function

    def _batch_function(self, number: int, head: OperatorProgram) -> None:
        received = self.form.received.get(number, SentRecords())
        known = records_of(head.spec) or received.type
        function = self._open(
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
        taken: Lines = []
        if key is not None and key.is_carried:
            taken = f.statements(f"{self._carried_key(head, number)}, record = value", head.index)
            place = replace(place, value="record")
        body = [*taken, *self.operator(head, place, number)]
        if body:
            function.body = [_loop(body, has_timestamps=head.timestamps)]
        if not received.is_certain:
            f.add_fallback(self.form, function, types={})
            self.names.bind("Columns", "shared")
            function.guards.append(f.expression("values.__class__ is Columns"))

    def add_emit_function(self, operator: OperatorProgram) -> None:
        """Generates a function for everything downstream of an operator's main output."""
        self._later(f"emit_{operator.index}", lambda: self._emit_function(operator, None))

    def emit_sides(self, operator: OperatorProgram) -> bool:
        """Generates a function for each side output that has a reader. Returns whether there is one."""
        tags = side_tags(self.program, operator.index)
        for number, tag in enumerate(tags):
            self._later(
                f"emit_{operator.index}_{number}",
                lambda tag=tag, number=number: self._emit_function(operator, tag, f"_{number}"),  # type: ignore[misc]
            )
        return bool(tags)

    def emit_batches(self, operator: OperatorProgram) -> None:
        """Generates a function that processes the results of an operator in batches."""
        self._later(f"batch_{operator.index}", lambda: self._results_function(operator))

    def _later(self, name: str, write: Callable[[], None]) -> None:
        if name not in self._known:
            self._known.add(name)
            self._todo.append(write)

    def _emit_function(self, operator: OperatorProgram, tag: str | None, suffix: str = "") -> None:
        about = f"Emitted by '{operator.name}' outside its function" + (
            f", to '{tag}'" if tag else ""
        )
        function = self._open(
            f"emit_{operator.index}{suffix}", "value, timestamp", about, is_batch=False
        )
        place = Place("value", "timestamp", in_batch=False, is_shared=True, loops=0)
        lines, place = self.out_of_state(operator, place, tag)
        function.body = [*lines, *self.downstream(operator, place, tag)]

    def _run_function(self, operator: OperatorProgram) -> None:
        function = self._open(
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
        function = self._open(name, "values, timestamps", about, is_batch=True)
        has_times = self.tree.times_are_read(operator)
        place = Place("value", "timestamp" if has_times else None, in_batch=True, is_shared=True)
        body = self.readers(operator, place, None)
        if body:
            function.body = [_loop(body, has_timestamps=has_times)]

    def _fire_function(self, operator: OperatorProgram) -> None:
        """The loop over the keys of a window that fires, in place of `WindowEvaluation.emit_all`.

        Replaces `emit_each` if each key has its own window.
        """
        index, spec = operator.index, operator.spec
        assert isinstance(spec, specs.WindowSpec)
        has_one_window = is_aligned(spec, is_batch=self.program.is_batch)
        arguments = "due, window, timestamp" if has_one_window else "due"
        windows = "a window that fires" if has_one_window else "windows that fire"
        about = f"Results of '{operator.name}' for {windows}"
        function = self._open(f"fire_{index}", arguments, about, is_batch=True)
        method = "process" if isinstance(spec.function, _PROCESS_WINDOW) else "apply"
        owner = self.names.bind(f"self_of_{index}", "attribute", index, "evaluation.function")
        name = self.names.bind_function(
            spec.function, "window", str(index), "window_method", index, method
        )
        key, elements, window = (
            f.name(f"key_{index}"),
            f.name(f"elements_{index}"),
            f.name("window"),
        )
        if method == "process":
            context = self.names.bind(f"context_{index}", "attribute", index, "evaluation.context")
            window = f.name(context)
        arguments_of_call = [*([] if spec.is_all else [key]), window, elements]
        call = self.call_of(name, spec.function, method, *arguments_of_call, owner=owner)
        place = Place("", "timestamp", in_batch=False)
        emits = self._emits_fired(operator, place, call)
        if has_one_window:
            shown = [key.id, f"held_{index}"]
            body = self._evaluated(operator, place, emits)
        else:
            shown = [key.id, "window", elements.id]
            body = [*f.statements("timestamp = window.max_timestamp()", index), *emits]
        each = ast.Tuple([f.target(item) for item in shown], ast.Store())
        loop = ast.For(each, f.name("due"), body, [], lineno=0)
        function.body = f.marked([loop], index)

    def _evaluated(self, operator: OperatorProgram, place: Place, emits: Lines) -> Lines:
        """Makes the key current, and gives the contents of its window to `emits`, as `Contents.elements` does."""
        index, spec = operator.index, operator.spec
        assert isinstance(spec, specs.WindowSpec)
        self.names.bind(f"set_state_key_{index}", "set_state_key", index)
        lines = self.code(
            operator,
            place,
            """
            set_state_key(key)
            if key.__class__ not in op.plain:
                key = key_of(key)
            """,
            key_of=f.name(self.names.bind("key_of", "shared")),
        )
        if spec.aggregate is not None:
            name = self.names.bind_function(
                spec.aggregate,
                "get_result",
                str(index),
                *("attribute", index, "contents.result_of"),
            )
            owner = self.names.bind(f"self_{index}", "window_function", index)
            text = """
                if held is not None:
                    result = got
                    if result is not None:
                        elements = (result,)
                        emits
                """
            got = self.call_of(
                name, spec.aggregate, "get_result", f.name(f"held_{index}"), owner=owner
            )
            return [*lines, *self.code(operator, place, text, got=got, emits=emits)]
        text = """
            elements = held[:]
            emits
            """
        if spec.reduce is not None:
            text = """
                if held is not None:
                    elements = (held,)
                    emits
                """
        return [*lines, *self.code(operator, place, text, emits=emits)]

    def _timers_function(self, operator: OperatorProgram) -> None:
        """The loop over the event-time timers that are due, in place of `KeyedFunctionOperator.on_event_time`."""
        index = operator.index
        about = f"Results of '{operator.name}' for event-time timers that are due"
        function = self._open(f"fire_{index}", "due", about, is_batch=True)
        context = self.names.bind(f"context_{index}", "context", index)
        name = self.names.bind(f"on_timer_{index}", "method", index, "on_timer")
        owner = self.names.bind(f"self_{index}", "function", index)
        parts = f.name("timestamp"), f.name(context)
        call = self.call_of(name, _function(operator), "on_timer", *parts, owner=owner)
        function.types["timestamp"] = int
        lines: Lines = []
        if not self.program.is_batch:  # there, all timers are of the current key
            self.names.bind(f"set_state_key_{index}", "set_state_key", index)
            lines += f.statements(f"set_state_key_{index}(key_{index})", index)
        lines += f.statements(f"{context}._timestamp = timestamp", index)
        place = Place("", "timestamp", in_batch=False)
        lines += self._emits_fired(operator, place, call)
        shown = ["timestamp", f"namespace_{index}", f"key_{index}"]
        each = ast.Tuple([f.target(item) for item in shown], ast.Store())
        function.body = f.marked([ast.For(each, f.name("due"), lines, [], lineno=0)], index)

    def _emits_fired(self, operator: OperatorProgram, place: Place, call: ast.expr) -> Lines:
        """Emits what a function returns when it fires. The results are sent here if exchanges are their only readers."""
        self.add_emit_function(operator)
        is_sent = not self.tree.children(operator) and all(
            output.combine is None for _, output in self.tree.outputs(operator)
        )
        return self._emits_results(operator, place, call, calls_emit=not is_sent)

    # Operators

    def operator(self, operator: OperatorProgram, place: Place, number: int) -> Lines:
        """The code of an operator for a record, and of all operators downstream of it."""
        if place.loops > DEEPEST or place.operators > LONGEST:
            self._later(f"run_{operator.index}", lambda: self._run_function(operator))
            call = f"run_{operator.index}({place.value}, {place.timestamp})"
            return f.statements(call, operator.index)
        place = replace(place, operators=place.operators + 1)
        self.names.bind(f"op_{operator.index}", "operator", operator.index)
        lines = [_count(operator, "records_in")]
        if operator.spec.kind not in PASSES_REFERENCES:
            lines += self.keep(place, operator)
            place = replace(place, is_shared=False)
        lower = LOWERINGS.get(type(operator.spec), _Lowering.call)
        if isinstance(operator.spec, _TAGGING) and side_tags(self.program, operator.index):
            lower = _Lowering.call
        return [*lines, *lower(self, operator, place, number)]

    def keep(self, place: Place, operator: OperatorProgram) -> Lines:
        """Copies a record if the function that emitted it may still have a reference to it."""
        if not (place.is_shared and self.copies):
            return []
        return f.marked([f.made(f.CopyIfMutable, target=f.target(place.value))], operator.index)

    def out_of_state(
        self, operator: OperatorProgram, place: Place, tag: str | None = None
    ) -> tuple[Lines, Place]:
        """A copy of a record that may be in the operator's state, for functions downstream that may change it."""
        children = self.tree.children(operator, tag)
        if operator.spec.kind not in EMITS_STATE or all(
            child.spec.kind not in PASSES_REFERENCES for child in children
        ):
            return [], place
        kept: Lines = [
            f.made(f.CopyIfMutable, target=f.target(place.value), is_stored=True)
        ] * self.copies
        return f.marked(kept, operator.index), replace(place, is_shared=False)

    def downstream(self, operator: OperatorProgram, place: Place, tag: str | None = None) -> Lines:
        """Counts a record that an operator emits, and passes it to all readers."""
        return [_count(operator, "records_out"), *self.readers(operator, place, tag)]

    def readers(self, operator: OperatorProgram, place: Place, tag: str | None) -> Lines:
        """Passes a record to exchanges and chained operators, in Flink's order. All but the last get a copy."""
        lines: Lines = []
        if tag is None and operator.record_type is not None:
            index = operator.index
            convert = self.names.bind(f"as_declared_{index}", "attribute", index, "as_declared")
            lines.append(self._declared(operator, place, f"row_{index}", convert))
            place = replace(place, value=f"row_{index}")
        todo: list[tuple[Callable[[Place], Lines], str]] = [
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
            copies.is_fork = True  # type: ignore[attr-defined]
            kept = f.made(f.CopyIfMutable, target=f.target(copied), is_fork=True)
            lines += [copies, *f.marked([kept], operator.index)]
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
    ) -> Lines:
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

    def _combine(self, number: int, output: OutputProgram, place: Place, comment: str) -> Lines:
        assert output.key is not None
        where = FIRST_OUTPUT - number
        key, previous = f"key_{number}", f"sum_{number}"
        selected = self._key_call(output.key, f"to_{number}", ("output_key", number), place)
        self.names.bind("ABSENT", "shared")
        self.names.bind(f"combined_{number}", "combined", number)
        name = self._function_name(output.combine, "reduce", f"to_{number}", ("combine", number))
        fold = f.made(
            f.Fold,
            table=f"combined_{number}",
            previous=previous,
            key=f.name(key),
            value=place.record,
            first=self._first(
                output.combine, f"first_to_{number}", ("combine_first", number), place.record
            ),
            reduced=self.call_of(name, output.combine, "reduce", f.name(previous), place.record),
            target=None,
        )
        plain = self.names.bind(f"plain_keys_to_{number}", "output_plain_keys", number)
        identify = self.names.bind(f"identify_to_{number}", "output_identify", number)
        lines = [f.let(key, selected, where), _identified(key, plain, identify), fold]
        return f.with_comment(f.marked(lines, where), comment)

    def _first(
        self, function: Any, name: str, path: tuple[Any, ...], record: ast.expr
    ) -> ast.expr | None:
        """The call that checks and returns the first record of a key; None if the function has no such check."""
        if not hasattr(function, "first"):
            return None
        return ast.Call(f.name(self.names.bind(name, *path)), [record], [])

    def _function_name(
        self, function: Any, kind: str, where: str | int, path: tuple[Any, ...]
    ) -> str:
        return self.names.bind_function(function, kind, str(where), *path)

    def call_of(
        self, name: str, function: Any, method: str, *arguments: ast.expr, owner: str | None = None
    ) -> ast.expr:
        """The call of a user's function by its name, which rules may look into."""
        plain, instance = plain_function(function, method)
        if (getattr(plain, "__module__", "") or "").startswith("opchain.runtime."):
            self.form.aggregations[name] = instance
            return ast.Call(f.name(name), list(arguments), [])
        path = self.names.bindings[name]
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
        name = self._function_name(selector, "key", where, path)
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
        function, index = _function(operator), operator.index
        digit = method[-1] if method[-1].isdigit() else ""
        name = self.names.function(function, f"{operator.spec.kind}{digit}", index)
        name = f"{name}_{digit}" if digit else name
        self.names.bind(name, "method", index, method)
        owner = self.names.bind(f"self_{index}", "function", index)
        return self.call_of(name, function, method, *arguments, owner=owner)

    def set_key(self, operator: OperatorProgram, place: Place, number: int = 0) -> Lines:
        """Makes the record's key the current one."""
        index = operator.index
        self.names.bind(f"set_key_{index}", "set_key", index)
        selected = self.key_of(operator, place, number)
        return self.code(operator, place, "key = selected; set_key(key)", selected=selected)

    def set_key_of_rich(self, operator: OperatorProgram, place: Place, number: int = 0) -> Lines:
        """On a keyed stream a function may use keyed state: its key is set before each call."""
        if not operator.keys or operator.keys[number] is None:
            return []
        is_needed = may_use_state(_function(operator))
        return self.set_key(operator, place, number) if is_needed else []

    def map(self, operator: OperatorProgram, place: Place, _number: int) -> Lines:
        """`value_1 = parse_1(value)`."""
        index = operator.index
        function = _function(operator)
        if type(function) is InputTagger:  # of a join
            made: ast.expr = ast.Tuple([ast.Constant(function.number), place.record], ast.Load())
        else:
            made = self.applied(operator, "map", place.record)
        result = f.let(f"value_{index}", made, index)
        lines = [
            *self.set_key_of_rich(operator, place),
            *f.with_comment([result], _comment(operator)),
        ]
        place = replace(place, value=f"value_{index}", is_shared=True)
        return [*lines, *self.downstream(operator, place)]

    def filter(self, operator: OperatorProgram, place: Place, _number: int) -> Lines:
        """`if is_click_2(value_1): ...`."""
        test = self.applied(operator, "filter", place.record)
        guard = ast.If(test, self.downstream(operator, place), [])
        lines = f.with_comment(f.marked([guard], operator.index), _comment(operator))
        return [*self.set_key_of_rich(operator, place), *lines]

    def flat_map(self, operator: OperatorProgram, place: Place, _number: int) -> Lines:
        """`for value_3 in words_3(value_2): ...`."""
        call = self.applied(operator, "flat_map", place.record)
        return [*self.set_key_of_rich(operator, place), *self._emits(operator, place, call)]

    def _emits(
        self,
        operator: OperatorProgram,
        place: Place,
        iterable: ast.expr,
        *,
        nullable: bool = False,
        side: Lines | None = None,
        by_tag: dict[str, tuple[str, Lines]] | None = None,
        body: Lines | None = None,
    ) -> Lines:
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
        return f.with_comment(f.marked([emits], operator.index), _comment(operator))

    def co_map(self, operator: OperatorProgram, place: Place, number: int) -> Lines:
        """A map per input; None emits nothing."""
        index, result = operator.index, f"value_{operator.index}"
        call = self.applied(operator, ("map1", "map2")[number], place.record)
        lines = f.with_comment([f.let(result, call, index)], _comment(operator))
        behind = self.downstream(operator, replace(place, value=result, is_shared=True))
        guard = ast.If(f.expression(f"{result} is not None"), behind, [])
        guard.asks = "none"  # type: ignore[attr-defined]
        return [
            *self.set_key_of_rich(operator, place, number),
            *lines,
            *f.marked([guard], index),
        ]

    def co_flat_map(self, operator: OperatorProgram, place: Place, number: int) -> Lines:
        """A flat map per input; None emits nothing."""
        call = self.applied(operator, ("flat_map1", "flat_map2")[number], place.record)
        lines = self._emits(operator, place, call, nullable=True)
        return [*self.set_key_of_rich(operator, place, number), *lines]

    def process(self, operator: OperatorProgram, place: Place, number: int) -> Lines:
        """A loop over the results of a process function. Tagged results go to side outputs."""
        index = operator.index
        has_two_inputs = isinstance(operator.spec, (specs.CoProcessSpec, specs.KeyedCoProcessSpec))
        method = f"process_element{number + 1}" if has_two_inputs else "process_element"
        context = self.names.bind(f"context_{index}", "context", index)
        lines: Lines = []
        if place.timestamp is not None:
            lines += f.statements(f"{context}._timestamp = {place.timestamp}", index)
        call = self.applied(operator, method, place.record, f.name(context))
        return [
            *lines,
            *self._emits_results(operator, place, call, calls_emit=_emits_by_timer(operator)),
        ]

    def _emits_results(
        self, operator: OperatorProgram, place: Place, call: ast.expr, *, calls_emit: bool
    ) -> Lines:
        """Emits the results of a function, as `emit_results` does. With `calls_emit`, calls `emit_I` for each."""
        index = operator.index
        side: Lines = []
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
        return self._emits(
            operator, place, call, nullable=True, side=side, by_tag=by_tag, body=body
        )

    def _by_tag(self, operator: OperatorProgram, place: Place) -> dict[str, tuple[str, Lines]]:
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

    def keyed_process(self, operator: OperatorProgram, place: Place, number: int) -> Lines:
        """The code of `process`, after the record's key is set."""
        if _emits_by_timer(operator):
            self._later(f"fire_{operator.index}", lambda: self._timers_function(operator))
        lines = self.set_key(operator, place, number)
        return [*lines, *self.process(operator, place, number)]

    def broadcast_process(self, operator: OperatorProgram, place: Place, number: int) -> Lines:
        """The code of a process function for the stream's records. Broadcast records are few: a call processes them."""
        if number:
            return self.call(operator, place, number)
        is_keyed = isinstance(operator.spec, specs.KeyedBroadcastProcessSpec)
        return (self.keyed_process if is_keyed else self.process)(operator, place, number)

    def reduce(self, operator: OperatorProgram, place: Place, _number: int) -> Lines:
        """Reduces the record into its key's entry. In batch mode, results are emitted only at the end of the key."""
        index, names = operator.index, self.names
        key, previous, result = f"key_{index}", f"previous_{index}", f"value_{index}"
        names.bind("ABSENT", "shared")
        names.bind(f"table_{index}", "table", index)
        first: ast.expr | None = None
        if isinstance(operator.spec, specs.CombinedReduceSpec):
            # The senders have checked the first records.
            lines = f.statements(f"{key}, item_{index} = {place.value}", index)
            value = f.name(f"item_{index}")
        else:
            lines = [f.let(key, self.key_of(operator, place, 0), index)]
            if has_lifecycle(_function(operator)):
                names.bind(f"set_key_{index}", "set_key", index)
                lines += f.statements(f"set_key_{index}({key})", index)
            value = place.record
            path = ("method", index, "first")
            first = self._first(_function(operator), f"first_{index}", path, value)
        plain = names.bind(f"plain_keys_{index}", "plain_keys", index)
        identify = names.bind(f"identify_{index}", "identify", index)
        lines.append(_identified(key, plain, identify))
        fold = f.made(
            f.Fold,
            table=f"table_{index}",
            previous=previous,
            key=f.name(key),
            value=value,
            first=first,
            reduced=self.applied(operator, "reduce", f.name(previous), value),
            target=f.target(result),
        )
        lines = f.with_comment(f.marked([*lines, fold], index), _comment(operator))
        if self.program.is_batch:
            self.emit_batches(operator)
            return lines
        copied, place = self.out_of_state(operator, replace(place, value=result, is_shared=True))
        return [*lines, *copied, *self.downstream(operator, place)]

    def sink_writer(self, operator: OperatorProgram, place: Place, _number: int) -> Lines:
        """`values_of_4.append(value_3)`. The records are written as a batch, and committables are emitted at the end."""
        self.add_emit_function(operator)
        return self.gather(operator, place, 0)

    def gather(self, operator: OperatorProgram, place: Place, _number: int) -> Lines:
        """`values_of_4.append(value_3)`, for an operator that takes records as a batch."""
        index = operator.index
        values = self.names.bind(f"values_of_{index}", "sink_values", index)
        lines: Lines = [f.made(f.Append, list=values, value=place.record, sink=index)]
        if operator.timestamps:
            times = self.names.bind(f"timestamps_of_{index}", "sink_timestamps", index)
            time = place.time or ast.Constant(None)
            lines.append(f.made(f.Append, list=times, value=time, sink=index))
        return f.with_comment(f.marked(lines, index), _comment(operator))

    def map_batches(self, operator: OperatorProgram, place: Place, number: int) -> Lines:
        """`values_of_1.append(value)`. The batch is flushed at the end of the turn."""
        index = operator.index
        function = self._function
        if place.in_batch and function.kind == "process":
            name = self.names.bind(f"flush_{index}", "flush_batch", index)
            function.at_end += f.statements(f"{name}()", index)
        self.emit_batches(operator)
        return self.gather(operator, place, number)

    def legacy_sink(self, operator: OperatorProgram, place: Place, _number: int) -> Lines:
        """`print_sink_4(value_3, context_4)`."""
        index = operator.index
        context = self.names.bind(f"context_{index}", "context", index)
        lines: Lines = []
        if place.timestamp is not None:
            lines += f.statements(f"{context}._timestamp = {place.timestamp}", index)
        call = self.applied(operator, "invoke", place.record, f.name(context))
        invoke = f.with_comment(f.marked([ast.Expr(call)], index), _comment(operator))
        return [*lines, *invoke]

    def call(self, operator: OperatorProgram, place: Place, number: int) -> Lines:
        """Calls an operator that emits outside record processing. Everything downstream of it is a separate function."""
        index = operator.index
        name = self.names.bind(f"{operator.spec.kind}_{index}_{number}", "process", index, number)
        self.add_emit_function(operator)
        self.emit_sides(operator)
        lines = f.statements(f"{name}({place.value}, {place.timestamp})", index)
        return f.with_comment(lines, _comment(operator))

    # Event time

    def timestamps(self, operator: OperatorProgram, place: Place, number: int) -> Lines:
        """Gives a record its timestamp, and keeps the greatest of a batch for the watermark generator.

        This is done only for generators that need nothing but the greatest timestamp, and emit after the batch. Any other
        generator may emit after each record, so it is called as an object.
        """
        strategy = _strategy_of(operator)
        is_written_out = strategy is not None and (
            place.in_batch
            and (
                self.program.is_batch or isinstance(strategy.generator_supplier, _KEEP_THE_GREATEST)
            )
        )
        if strategy is None or is_written_out:
            self.emit_sides(operator)  # a source may have one, for malformed records
        if strategy is None:
            return self.downstream(operator, place)
        if not is_written_out:
            return self.call(operator, place, number)
        lines: Lines = []
        index, assigner = operator.index, strategy.timestamp_assigner
        if assigner is not None:
            self.names.bind("NO_TIMESTAMP", "shared")
            time = place.timestamp
            so_far = (
                "NO_TIMESTAMP" if time is None else f"NO_TIMESTAMP if {time} is None else {time}"
            )
            is_wrapped = isinstance(assigner, FunctionTimestampAssigner)
            call = self.call_of(
                self.names.bind(f"time_of_{index}", "attribute", index, "time_of"),
                assigner.function if is_wrapped else assigner,  # type: ignore[attr-defined]
                "extract_timestamp",
                place.record,
                f.expression(so_far),
                owner=self.names.bind(
                    f"assigner_{index}", "attribute", index, "strategy.timestamp_assigner"
                ),
            )
            text = """
                timestamp = assigned
                if timestamp.__class__ is not int:
                    timestamp = op.as_timestamp(timestamp, value)
                """
            assigns = self.code(operator, place, text, assigned=call)
            lines = f.with_comment(assigns, _comment(operator))
            place = replace(place, timestamp=f"timestamp_{index}")
        if place.timestamp is not None and not self.program.is_batch:
            greatest = f"greatest_{index}"
            self.names.bind("NO_TIMESTAMP", "shared")
            self._function.before += f.statements(f"{greatest} = NO_TIMESTAMP", NO_OPERATOR)
            self._function.after += f.statements(f"op_{index}.saw({greatest})", NO_OPERATOR)
            test = f"{place.timestamp} > {greatest}"
            if strategy.timestamp_assigner is None:
                test = f"{place.timestamp} is not None and {test}"
            lines += f.statements(f"if {test}:\n    {greatest} = {place.timestamp}", index)
        return [*lines, *self.downstream(operator, place)]

    # Windows

    def window(self, operator: OperatorProgram, place: Place, number: int) -> Lines:
        """Windows of time or of a count, with the default trigger, are written out. All others are called."""
        spec = operator.spec
        assert isinstance(spec, specs.WindowSpec)
        index = operator.index
        write = self._window_writer(operator)
        called = self.call(operator, place, number) if write is None else []
        self.add_emit_function(operator)
        self.emit_sides(operator)
        if spec.function is not None and (has_plain_windows(spec) or has_plain_sessions(spec)):
            self._later(f"fire_{index}", lambda: self._fire_function(operator))
        if write is None:
            return called
        selected = """
            key = selected
            if key.__class__ not in op.plain:
                key = op.identify(key)
            """
        lines = self.code(operator, place, selected, selected=self.key_of(operator, place, 0))
        if spec.assigner.is_event_time():
            refused = """
                if time is None:
                    op.refuse(value)
                """
            lines += self.code(operator, place, refused)
        return [*f.with_comment(lines, _comment(operator)), *write(operator, place)]

    def _window_writer(
        self, operator: OperatorProgram
    ) -> Callable[[OperatorProgram, Place], Lines] | None:
        """The function that writes the code with which a window operator adds records; None if it is called instead.

        In batch mode, the code notifies most of these operators when the next key begins.
        """
        spec, is_batch = operator.spec, self.program.is_batch
        assert isinstance(spec, specs.WindowSpec)
        takes_state = adds_with_state(spec)
        if has_plain_counts(spec) and not takes_state:
            return self._counted
        if operator.timestamps and is_aligned(spec, is_batch=is_batch):
            return self._aligned
        if operator.timestamps and has_plain_sessions(spec) and not is_batch:
            return self._session
        is_plain = has_plain_processing_time(spec) and not is_batch and not takes_state
        return self._processing_time if is_plain else None

    def _processing_time(self, operator: OperatorProgram, place: Place) -> Lines:
        """The code of `ProcessingTimeWindowOperator.process_element`, after its key is known."""
        text = """
            for pane in op.open_panes():
                if key not in pane:
                    op.await_end(key, pane)
                add
            """
        add = self._add(operator, place, "contents.kind", "pane.get(key)", "pane[key]")
        return self.code(operator, place, text, add=add)

    def _counted(self, operator: OperatorProgram, place: Place) -> Lines:
        """The code of `CountWindowOperator.process_element`, after its key is known."""
        assigner = operator.spec.assigner  # type: ignore[attr-defined]
        is_tumbling = assigner.window_slide == assigner.window_size
        text = """
            counts = op.counted.get(key)
            if counts is None or counts.left == 1:
                op.count_for(key, value, time)
            else:
                counts.left -= 1
                added
            """
        held = "counts.held" if is_tumbling else "window.held"
        added = self._add(operator, place, "contents.kind", held, held)
        if not is_tumbling:
            each = """
                for window in (*counts.later, counts):
                    added
                """
            added = self.code(operator, place, each, added=added)
        return self.code(operator, place, text, added=added)

    def _session(self, operator: OperatorProgram, place: Place) -> Lines:
        """The code of `SessionWindowOperator.process_element`, after its key is known."""
        index, assigner = operator.index, operator.spec.assigner  # type: ignore[attr-defined]
        self._function.before += f.statements(
            f"sessions_changed_{index} = op_{index}.changed", NO_OPERATOR
        )
        gap = getattr(assigner, "session_gap", None)
        text = f"""
            session_end = time + {"op.gap_of(value)" if gap is None else gap}
            session = op.latest_session.get(key)
            if session is None or not session.start <= time <= session.end or session_end > {MAX_LONG_VALUE}:
                session = op.session_for(key, value, time, session_end)
            elif session_end > session.end:
                session.end = session_end
                session.change = op.next_change()
            if session is not None:
                if sessions_changed is not None:
                    sessions_changed[key] = None
                add
            """
        add = self._add(operator, place, "contents.kind", "session.held", "session.held")
        return self.code(operator, place, text, add=add)

    def _aligned(self, operator: OperatorProgram, place: Place) -> Lines:
        """The code of `AlignedWindowOperator.process_element`, after its key is known.

        The operator itself handles windows that are new, late or have fired (`pane_for`, `panes_for`).
        """
        size, slide, offset = operator.spec.assigner.pace  # type: ignore[attr-defined]
        add = self._add(operator, place, "contents", "pane.get(key)", "pane[key]")
        since = f"(time - {offset})" if offset else "time"
        start = self.code(operator, place, f"start = time - {since} % {slide}")
        if slide < size:
            text = """
                panes = op.panes_since.get(start)
                if panes is None:
                    panes = op.panes_for(start, key, value, time)
                for pane in panes:
                    add
                """
            return [*start, *self.code(operator, place, text, add=add)]
        text = """
            pane = op.panes.get(start)
            if pane is None:
                pane = op.pane_for(start, key, value, time)
            if pane is not None:
                add
            """
        inside = self.code(operator, place, text, add=add)
        if slide > size:
            text = f"""
                if time - start >= {size}:
                    op.skip(value, time)
                else:
                    inside
                """
            between = self.code(operator, place, text, inside=inside)
            inside = f.with_comment(between, "between two windows")
        return [*start, *inside]

    def _add(
        self, operator: OperatorProgram, place: Place, contents: str, read: str, entry: str
    ) -> Lines:
        """Takes the record into the key's contents at `entry`, as the class at `contents` does."""
        index = operator.index
        spec = operator.spec
        assert isinstance(spec, specs.WindowSpec)
        held = f.name(f"held_{index}")
        owner = self.names.bind(f"self_{index}", "window_function", index)
        if spec.reduce is not None:
            name = self.names.function(spec.reduce, "reduce", index)
            self.names.bind(name, "attribute", index, f"{contents}.reduce")
            path = ("attribute", index, f"{contents}.first")
            text = f"""
                held = {read}
                if held is None:
                    held = begin
                else:
                    held = reduced
                {entry} = held
                """
            return self.code(
                operator,
                place,
                text,
                begin=self._first(spec.reduce, f"first_{index}", path, place.record)
                or place.record,
                reduced=self.call_of(name, spec.reduce, "reduce", held, place.record, owner=owner),
            )
        if spec.aggregate is not None:
            create = self.names.bind(f"create_{index}", "attribute", index, f"{contents}.create")
            name = self.names.function(spec.aggregate, "add", index)
            self.names.bind(name, "attribute", index, f"{contents}.fold_in")
            text = f"""
                held = {read}
                if held is None:
                    held = begin
                held = added
                {entry} = held
                """
            return self.code(
                operator,
                place,
                text,
                begin=self.call_of(create, spec.aggregate, "create_accumulator", owner=owner),
                added=self.call_of(name, spec.aggregate, "add", place.record, held, owner=owner),
            )
        text = f"""
            held = {read}
            if held is None:
                {entry} = [value]
            else:
                held.append(value)
            """
        return self.code(operator, place, text)


LOWERINGS: dict[type[specs.OperatorSpec], Callable[[_Lowering, Any, Place, int], Lines]] = {
    specs.SourceSpec: _Lowering.timestamps,
    specs.InputFormatSourceSpec: _Lowering.timestamps,
    specs.LegacySourceSpec: _Lowering.timestamps,
    specs.TimestampsWatermarksSpec: _Lowering.timestamps,
    specs.MapSpec: _Lowering.map,
    specs.FilterSpec: _Lowering.filter,
    specs.FlatMapSpec: _Lowering.flat_map,
    specs.MapBatchesSpec: _Lowering.map_batches,
    specs.ProcessSpec: _Lowering.process,
    specs.KeyedProcessSpec: _Lowering.keyed_process,
    specs.KeyedCoProcessSpec: _Lowering.keyed_process,
    specs.ReduceSpec: _Lowering.reduce,
    specs.CombinedReduceSpec: _Lowering.reduce,
    specs.WindowSpec: _Lowering.window,
    specs.CoMapSpec: _Lowering.co_map,
    specs.CoFlatMapSpec: _Lowering.co_flat_map,
    specs.CoProcessSpec: _Lowering.process,
    specs.BroadcastProcessSpec: _Lowering.broadcast_process,
    specs.KeyedBroadcastProcessSpec: _Lowering.broadcast_process,
    specs.SinkWriterSpec: _Lowering.sink_writer,
    specs.CollectSinkSpec: _Lowering.gather,
    specs.LegacySinkSpec: _Lowering.legacy_sink,
    specs.TwoPhaseSinkSpec: _Lowering.gather,
}
"""Every other kind is called as an object: `_Lowering.call`."""


def _function(operator: OperatorProgram) -> Any:
    return operator.spec.function  # type: ignore[attr-defined]


def _emits_by_timer(operator: OperatorProgram) -> bool:
    """Whether timers emit results. Then `emit_I` processes all results of the operator."""
    return isinstance(operator.spec, _WITH_TIMERS) and has_on_timer(_function(operator))


def _strategy_of(operator: OperatorProgram) -> WatermarkStrategy[Any] | None:
    spec = operator.spec
    if isinstance(spec, specs.TimestampsWatermarksSpec):
        return spec.strategy
    return spec.watermark_strategy if isinstance(spec, specs.SourceSpec) else None


def _comment(operator: OperatorProgram) -> str:
    """The comment at the first line of an operator."""
    return f"{operator.index} {one_line_name(operator.name)} ({one_line_name(operator.call_site)})"


def _count(operator: OperatorProgram, what: str) -> ast.stmt:
    return f.marked([f.made(f.Count, what=what)], operator.index)[0]


def _identified(key: str, plain: str, identify: str) -> ast.stmt:
    """Replaces a key of an unusual class by its state key (see key_identity.py)."""
    text = f"if {key}.__class__ not in {plain}:\n    {key} = {identify}({key})"
    return ast.parse(text).body[0]


def _loop(body: list[ast.stmt], *, has_timestamps: bool) -> ast.For:
    """The loop over a batch."""
    if not has_timestamps:
        return ast.For(f.target("value"), f.name("values"), body, [], lineno=0)
    both = ast.Tuple([f.target("value"), f.target("timestamp")], ast.Store())
    return ast.For(both, f.expression("zip(values, timestamps)"), body, [], lineno=0)
