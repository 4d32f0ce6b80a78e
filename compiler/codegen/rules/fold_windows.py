"""Records for windows are folded before the exchange, per key and slice of event time, if the fold is associative.

>>> from opchain.common import WatermarkStrategy
>>> from opchain.datastream.window import TumblingEventTimeWindows
>>> strategy = WatermarkStrategy.for_monotonous_timestamps()
>>> strategy = strategy.with_timestamp_assigner(lambda row, _: row[1])
>>> change(
...     "fold_windows",
...     lambda numbers: numbers.map(lambda x: (x % 7, x))
...     .set_parallelism(1)
...     .assign_timestamps_and_watermarks(strategy)
...     .set_parallelism(1)
...     .key_by(lambda row: row[0])
...     .window(TumblingEventTimeWindows.of(1000))
...     .reduce(lambda a, b: (a[0], a[1] + b[1])),
...     vertex=1,
... )
+ slice_to_0 = end_to_0 = 0
-   column_0_0.append(item_0_0)
-   column_0_1.append(value)
-   timestamps_0.append(timestamp_1)
+   if not slice_to_0 <= timestamp_1 < end_to_0:
+     slice_to_0 = timestamp_1 - timestamp_1 % 1000
+     end_to_0 = slice_to_0 + 1000
+     run_to_0, seen_to_0 = run_for_to_0(slice_to_0)
+   if run_to_0 is None:
+     column_0_0.append(item_0_0)
+     column_0_1.append(value)
+     timestamps_0.append(timestamp_1)
+     continue
+   seen_to_0.append(item_0_0)
+   held_to_0 = run_to_0.get(item_0_0)
+   run_to_0[item_0_0] = (item_0_0, value) if held_to_0 is None else (held_to_0[0], held_to_0[1] + value)

A sum of floats sends lists:

>>> halves = lambda numbers: numbers.map(lambda x: (x / 2, x)).set_parallelism(1)
>>> change(
...     "fold_windows",
...     lambda numbers: halves(numbers)
...     .assign_timestamps_and_watermarks(strategy)
...     .set_parallelism(1)
...     .key_by(lambda row: row[1] % 7)
...     .window(TumblingEventTimeWindows.of(1000))
...     .reduce(lambda a, b: (a[0] + b[0], a[1])),
...     vertex=1,
... )
+ slice_to_0 = end_to_0 = 0
-   keys_0.append(value % 7)
-   column_0_0.append(item_0_0)
-   column_0_1.append(value)
-   timestamps_0.append(timestamp_1)
+   key_to_0 = value % 7
+   if not slice_to_0 <= timestamp_1 < end_to_0:
+     slice_to_0 = timestamp_1 - timestamp_1 % 1000
+     end_to_0 = slice_to_0 + 1000
+     run_to_0, seen_to_0 = run_for_to_0(slice_to_0)
+   if run_to_0 is None:
+     keys_0.append(key_to_0)
+     column_0_0.append(item_0_0)
+     column_0_1.append(value)
+     timestamps_0.append(timestamp_1)
+     continue
+   seen_to_0.append(key_to_0)
+   held_to_0 = run_to_0.get(key_to_0)
+   if held_to_0 is None:
+     run_to_0[key_to_0] = ([item_0_0], value)
+     continue
+   held_to_0[0].append(item_0_0)

The results of other windows and of timers are folded in the same way where they fire, if only an exchange reads them.

The boundaries of all windows cut time into slices. So a sender can fold the records of a slice, and the window operator
merges the results (runtime/operators/window_folds.py). Sums, minima and maxima of ints are associative, and so are the first and
the last record, and tuples of them. A sum of floats depends on the order of addition. So if the type of a value is unknown, or
float, the partial result is the list of the numbers of a key. The window adds them one by one, which is still cheaper than
one record for each number: a program with 50 keys takes 0.8 of the time.

If the windows keep the records with the greatest or least int, the sender omits the records that the window would ignore
(window_selections.py). Records whose key is not plain, or whose value is of another class, are sent as they are. So are all
records if most keys come only a few times in a batch. The aggregate's own `merge` is not used: without merging windows,
programs may leave it empty.

Batch mode sorts records by time after the exchange. So a sender folds only ints there, where any order gives the same
result, and omits only records that the window ignores because of an earlier record of the batch.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.displays import display_of, field_reads
from opchain.compiler.codegen.names import stem
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.static_types import never_raises, type_of
from opchain.compiler.codegen.window_folds import IN_ANY_ORDER, WindowFold, combined_with
from opchain.compiler.codegen.window_selections import HELD, WindowSelection, rank_of_held
from opchain.runtime.operators.window_folds import LISTED
from opchain.runtime.program.vertex_program import FIRST_OUTPUT, NO_OPERATOR
from opchain.runtime.state.keys.key_identity import key_identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.codegen.static_types import Types


def fold_windows(form: f.Form) -> None:
    """Rewrites the sends of loops over batches to windows that can be folded, where an output has one."""
    for number, fold in list(form.window_folds.items()):
        sends = [each for each in form.sends(number) if each[0].kind not in ("fallback", "emit")]
        lines = _folded(form, *sends[0], fold) if len(sends) == 1 else None
        if lines is None:
            del form.window_folds[number]
            continue
        ((function, send),) = sends
        function.body = f.replaced_by(function.body, send, lines)
        function.before += f.statements(f"slice_to_{number} = end_to_{number} = 0", NO_OPERATOR)
        form.remark(notes.operator(send), "folded into windows before the exchange")


@dataclass(frozen=True, slots=True)
class _Partial:
    """How the sender keeps a partial result.

    Attributes:
        kinds: How the window operator merges it: see `runtime.operators.window_folds.merger`.
        adds: The statements that add a record, in terms of `run`, `key` and `held`.
        checked: Variables and the expressions of unknown type that they hold.
        classes: The classes that the variables must have.
    """

    kinds: tuple[str, ...]
    adds: f.Lines
    checked: dict[str, ast.expr] = field(default_factory=dict)
    classes: frozenset[type] = frozenset({int})


def _folded(
    form: f.Form, function: f.Function, send: f.Send, fold: WindowFold | WindowSelection
) -> f.Lines | None:
    """The statements that fold a record. None if the fold is not associative for its type."""
    if not _has_plain_time(form, function, send):
        return None
    assert isinstance(send.time, ast.Name)
    assert send.key is not None
    number, where = send.number, FIRST_OUTPUT - send.number
    types = types_of(function, form)
    lines = [f.let(f"key_to_{number}", send.key, where)]
    of_record = _fields_of(form, send, types, lines)
    if of_record is None:
        return None
    size, slide, offset = fold.pace
    step, is_batch = math.gcd(size, slide), form.program.is_batch
    if is_batch and len(form.sends(number)) > 1:
        types = {}  # the types of records that other functions send are unknown
    if is_batch and _keeps_records(fold):
        chosen = _unless_ignored(form, fold, of_record, types, send, lines)
        run_for = form.names.bind(f"run_for_to_{number}", "window_omissions", number)
        slices = _new_slice(number, send.time.id, step, offset, run_for)
        return chosen and f.with_comment(
            [*lines, *slices, *chosen], (notes.comment(send) or "") + ", folded here"
        )
    partial_result = (
        _selected(fold, of_record, types, send)
        if isinstance(fold, WindowSelection)
        else _combined(fold, of_record, types, send, in_any_order=is_batch)
    )
    if partial_result is None:
        return None
    has_one_run = step == size and not is_batch
    names = {
        name: form.names.bind(
            f"{name}_to_{number}",
            "window_folds",
            number,
            name,
            partial_result.kinds,
            size,
            has_one_run,
        )
        for name in ("run_for", "end_run")
    }
    lines += _new_slice(number, send.time.id, step, offset, names["run_for"])
    run = f"run_to_{number}"
    unusual = _unusual(form, send, partial_result, types, lines)
    if unusual:
        is_unusual = unusual[0] if len(unusual) == 1 else f"({' or '.join(unusual)})"
        lines += f.statements(
            f"if {run} is not None and {is_unusual}:\n"
            f"    {run} = {names['end_run']}()\n"
            f"    end_to_{number} = slice_to_{number}",
            where,
        )
    key = f"key_to_{number}"
    folds = f.statements(f"seen_to_{number}.append({key})", where) + partial_result.adds
    send.key = f.name(key)
    return f.with_comment(
        [*lines, *f.marked([ast.If(f.expression(f"{run} is None"), [send], folds)], where)],
        (notes.comment(send) or "") + ", folded here",
    )


def _keeps_records(fold: WindowFold | WindowSelection) -> bool:
    """Whether a window holds whole records: the selected ones, or the first."""
    return isinstance(fold, WindowSelection) or (fold.is_reduce and text_of(fold.folded) == HELD)


def _has_plain_time(form: f.Form, function: f.Function, send: f.Send) -> bool:
    """Whether each record that is sent has a key and an int as timestamp.

    Timestamps that this chain assigns are ints, and so are times at which something fires. Others may be None.
    """
    if not isinstance(send.time, ast.Name) or send.key is None:
        return False
    is_assigned = function.kind == "process" and stem(send.time.id) == "timestamp"
    is_plain = (is_assigned and send.time.id != "timestamp") or function.kind == "fire"
    return is_plain and not form.program.outputs[send.number].carries_key


def _fields_of(
    form: f.Form, send: f.Send, types: Types, lines: f.Lines
) -> Callable[[ast.expr], ast.expr] | None:
    """A function that replaces `value` in an expression by the record, or by its fields. None if the fields are unknown.

    Fields that are neither constants nor variables become variables, in `lines`.
    """
    if isinstance(send.value, ast.Name):
        record = send.value
        return lambda item: f.replaced(item, {"value": record})
    display = display_of(send.value, form.constants)
    if display is None or display.shape is not None:
        return None
    set_here, elements = f.in_variables(
        display.elements,
        f.is_simple,
        lambda position: f"item_to_{send.number}_{position}",
        notes.operator(send),
    )
    types |= {name: type_of(item, types) for name, item in f.values_set_once(set_here).items()}
    lines += set_here
    send.value = ast.Tuple(elements, ast.Load())
    reads = field_reads(display, "value", elements, send.value)
    return lambda item: f.changed(f.copied(item), reads)


def _new_slice(number: int, time: str, step: int, offset: int, run_for: str) -> f.Lines:
    """The statements that begin a run if a record is in another slice than the record before."""
    slice_, end = f"slice_to_{number}", f"end_to_{number}"
    since = f"({time} - {offset})" if offset else time
    return f.statements(
        f"if not {slice_} <= {time} < {end}:\n"
        f"    {slice_} = {time} - {since} % {step}\n"
        f"    {end} = {slice_} + {step}\n"
        f"    run_to_{number}, seen_to_{number} = {run_for}({slice_})",
        FIRST_OUTPUT - number,
    )


def _unusual(
    form: f.Form, send: f.Send, partial_result: _Partial, types: Types, lines: f.Lines
) -> list[str]:
    """The conditions for which a record is not folded. Their variables are set in `lines`."""
    number, unusual = send.number, []
    hasher = form.program.outputs[number].key.hasher  # type: ignore[union-attr]
    plain_classes = key_identity(hasher).plain
    if type_of(send.key, types) not in plain_classes:  # type: ignore[operator, arg-type]
        plain = form.names.bind(f"plain_keys_to_{number}", "value", plain_classes)
        unusual.append(f"key_to_{number}.__class__ not in {plain}")
    if partial_result.checked:
        usual = form.names.bind(f"usual_to_{number}", "value", partial_result.classes)
        for name, checked in partial_result.checked.items():
            if not f.is_load_of(checked, name):
                lines += _read(name, checked, types, FIRST_OUTPUT - number)
            unusual.append(f"{name}.__class__ not in {usual}")
    return unusual


def _read(name: str, checked: ast.expr, types: Types, operator: int) -> f.Lines:
    """The statements that read an item of a record. A record without it is unusual: the window may not read it at all."""
    if never_raises(checked, types):
        return [f.let(name, checked, operator)]
    text = f"try:\n    {name} = checked\nexcept Exception:\n    {name} = None"
    return f.statements(text, operator, checked=checked)


def _combined(
    fold: WindowFold,
    of_record: Callable[[ast.expr], ast.expr],
    types: Types,
    send: f.Send,
    *,
    in_any_order: bool,
) -> _Partial | None:
    """A partial result that is one value. None if the fold is not associative for the type of the record.

    With `in_any_order`, None if results may depend on the order of records: batch mode sorts them after the exchange.
    """
    assert send.key is not None
    fold = WindowFold(fold.pace, of_record(fold.first), of_record(fold.folded), fold.is_reduce)
    kinds = fold.kinds(types, {text_of(send.key)} if in_any_order else set())
    if kinds is None or (in_any_order and not IN_ANY_ORDER.issuperset(kinds)):
        return None
    number = send.number
    if {*LISTED} & {*kinds}:
        return _listed(fold, kinds, types, number)
    first: ast.expr | None = fold.first
    if not fold.is_reduce:
        first = _after_first(fold.first, fold.folded, kinds)
    if first is None:
        return None
    kinds = tuple("first" if kind == "same" else kind for kind in kinds)
    if kinds == ("sum",) and text_of(first) == "1" and text_of(fold.folded) == f"{HELD} + 1":
        return _Partial(("count",), [])
    held, run, key = f"held_to_{number}", f"run_to_{number}", f"key_to_{number}"
    later = f.replaced(fold.folded, {HELD: f.name(held)})
    adds = f.statements(
        f"{held} = {run}.get({key})\n{run}[{key}] = first if {held} is None else later",
        FIRST_OUTPUT - number,
        first=first,
        later=later,
    )
    return _Partial(kinds, adds)


def _listed(fold: WindowFold, kinds: tuple[str, ...], types: Types, number: int) -> _Partial | None:
    """A partial result with the lists of all values. None if a field is the last value, which is not listed."""
    is_tuple, held = kinds[0] == "tuple", f"held_to_{number}"
    fields = kinds[1:] if is_tuple else kinds
    if "last" in fields:
        return None
    firsts, folded = (
        part.elts if isinstance(part, ast.Tuple) and is_tuple else [part]
        for part in (fold.first, fold.folded)
    )
    begun: list[ast.expr] = []
    appends: f.Lines = []
    checked: dict[str, ast.expr] = {}
    for place, (kind, first, item) in enumerate(zip(fields, firsts, folded, strict=True)):
        if kind in ("first", "same"):
            begun.append(first)
            continue
        old = f"[{place}]" * is_tuple
        _, new = combined_with(item, HELD + old)
        assert new is not None
        if type_of(new, types) not in (int, float):
            name = new.id if isinstance(new, ast.Name) else f"new_to_{number}_{place}"
            checked[name], new = new, f.name(name)
        begun.append(ast.List([new], ast.Load()))
        appends += f.statements(f"{held}{old}.append(new)", FIRST_OUTPUT - number, new=new)
    run, key = f"run_to_{number}", f"key_to_{number}"
    begin = f.statements(
        f"{run}[{key}] = begun",
        FIRST_OUTPUT - number,
        begun=ast.Tuple(begun, ast.Load()) if is_tuple else begun[0],
    )
    adds = [
        *f.statements(f"{held} = {run}.get({key})", FIRST_OUTPUT - number),
        ast.If(f.expression(f"{held} is None"), begin, appends),
    ]
    kinds = tuple(_LIST_KINDS.get(kind, kind) for kind in kinds)
    return _Partial(kinds, f.marked(adds, FIRST_OUTPUT - number), checked, frozenset({int, float}))


_LIST_KINDS = {"same": "first", "sum": "sums", "min": "mins", "max": "maxs"}


def _selected(
    selection: WindowSelection,
    of_record: Callable[[ast.expr], ast.expr],
    types: Types,
    send: f.Send,
) -> _Partial | None:
    """A partial result that is the records which are not ignored. None if reading the rank may have other effects."""
    number, rank = send.number, of_record(selection.rank)
    if not (never_raises(rank, types) or f.item_variable(rank)):
        return None
    is_int = type_of(rank, types) is int
    held, run, key = f"held_to_{number}", f"run_to_{number}", f"key_to_{number}"
    new = rank if is_int else f.name(f"rank_to_{number}")
    old = rank_of_held(selection.rank, held, is_list=selection.keeps_ties)
    is_better = ast.BoolOp(
        ast.Or(), [f.expression(f"{held} is None"), ast.Compare(new, [selection.replaces()], [old])]
    )
    kept = "[record]" if selection.keeps_ties else "record"
    text = f"{held} = {run}.get({key})\nif is_better:\n    {run}[{key}] = {kept}"
    if selection.keeps_ties:
        text += f"\nelif new == old:\n    {held}.append(record)"
    adds = f.statements(
        text, FIRST_OUTPUT - number, is_better=is_better, record=send.value, new=new, old=old
    )
    kinds = ("records",) if selection.keeps_ties else ("record",)
    return _Partial(kinds, adds, {} if is_int else {f"rank_to_{number}": rank})


def _unless_ignored(
    form: f.Form,
    fold: WindowFold | WindowSelection,
    of_record: Callable[[ast.expr], ast.expr],
    types: Types,
    send: f.Send,
    lines: f.Lines,
) -> f.Lines | None:
    """The statements that send a record in batch mode, unless the window ignores it because of an earlier one.

    The earlier record hides the later one wherever records of other batches come between the two in the order of time:
    after a NaN, too, unless all ranks are ints. None if the window needs all records, or if reading the rank may have
    other effects.
    """
    assert send.time is not None
    number = send.number
    held, run, key = f"held_to_{number}", f"run_to_{number}", f"key_to_{number}"
    is_later = f.expression(f"{held} is not None and time >= {held}[0]", time=send.time)
    is_ignored, kept, checked = [is_later], [send.time], {}
    if isinstance(fold, WindowSelection):
        rank = of_record(fold.rank)
        is_int = type_of(rank, types) is int
        if not (never_raises(rank, types) or f.item_variable(rank)):
            return None
        if not (fold.ignores_nan or is_int):
            return None
        new, old = rank if is_int else f.name(f"rank_to_{number}"), f.expression(f"{held}[1]")
        checked = {} if is_int else {f"rank_to_{number}": rank}
        is_better = ast.Compare(new, [fold.replaces()], [old])
        is_ignored.append(ast.UnaryOp(ast.Not(), is_better))
        if fold.keeps_ties:
            is_ignored.append(ast.Compare(new, [ast.NotEq()], [old]))
        kept.append(new)
    unusual = _unusual(form, send, _Partial((), [], checked), types, lines)
    is_usual = " and ".join([f"{run} is not None", *(f"not {each}" for each in unusual)])
    sends = f.statements(
        f"if {is_usual} and ({held} is None or time >= {held}[0]):\n    {run}[{key}] = kept",
        FIRST_OUTPUT - number,
        time=send.time,
        kept=ast.Tuple(kept, ast.Load()),
    )
    omits = f.statements(f"seen_to_{number}.append({key})", FIRST_OUTPUT - number)
    send.key = f.name(key)
    choice = ast.If(ast.BoolOp(ast.And(), is_ignored), omits, [*sends, send])
    begin = f.statements(
        f"{held} = {run}.get({key}) if {is_usual} else None", FIRST_OUTPUT - number
    )
    return [*begin, *f.marked([choice], FIRST_OUTPUT - number)]


def _after_first(first: ast.expr, folded: ast.expr, kinds: tuple[str, ...]) -> ast.expr | None:
    """The accumulator after the first record. None if merging would add the initial value twice."""
    if kinds[0] != "tuple":
        return _after(first, folded, HELD, kinds[0])
    assert isinstance(first, ast.Tuple)
    assert isinstance(folded, ast.Tuple)
    fields = [
        _after(begin, item, f"{HELD}[{place}]", kind)
        for place, (begin, item, kind) in enumerate(
            zip(first.elts, folded.elts, kinds[1:], strict=True)
        )
    ]
    return None if None in fields else ast.Tuple(fields, ast.Load())  # type: ignore[arg-type]


def _after(first: ast.expr, folded: ast.expr, old: str, kind: str) -> ast.expr | None:
    if kind != "sum":
        begins: ast.expr = f.changed(
            f.copied(folded),
            lambda node: first if isinstance(node, ast.expr) and text_of(node) == old else None,
        )
        return begins
    if text_of(first) != "0":
        return None
    assert isinstance(folded, ast.BinOp)
    return folded.right if text_of(folded.left) == old else folded.left
