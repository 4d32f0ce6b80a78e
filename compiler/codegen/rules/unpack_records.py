"""Does not build tuples, Rows, named tuples and dictionaries of which only fields are read.

>>> change("unpack_records", lambda numbers: numbers.map(lambda x: (x % 7, x)).map(lambda row: row[0] + row[1]))
-   value_1 = (value % 7, value)
-   value_2 = value_1[0] + value_1[1]
+   item_1_0 = value % 7
+   value_2 = item_1_0 + value

A flat map that emits several records emits tuples of the fields that are read, or that field alone if it is one:

    for value_3 in (Row(x, y), Row(x, y + 1)):        for item_3_1 in (y, y + 1):
    for value_3 in [(word, 1) for word in words]:     for item_3_0 in words:

To see whether a result goes to a side output, the first field of a pair is enough.

A record that is sent or stored as a whole is built at that statement. A Row or a dictionary that other code gets, or that
is changed, stays as it is.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import owned_of, types_of, uses_of
from opchain.compiler.codegen.displays import Display, display_of, field_reads
from opchain.compiler.codegen.names import stem, unused
from opchain.compiler.codegen.record_uses import Uses, is_answered, is_fork_of
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.static_types import (
    IterableOf,
    Types,
    is_frozen,
    never_raises,
    type_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_MOST_COLD_USES = 3


def unpack_records(form: f.Form) -> None:
    """Replaces fields of records by the expressions of the fields."""
    for function in form.functions:
        _make_after_tries(form, function)
        known = f.values_set_once(function.body)
        function.body = without_tests(form, function.body, known, types_of(function, form))
        for statement in list(f.all_statements(function.body)):
            if isinstance(statement, f.ForEachResult):
                _loop_over_fields(form, function, statement)
        done: set[str] = set()
        while (found := _candidate(form, function, done)) is not None:
            name, display = found
            done.add(name)
            _UnpackedRecord(form, function, name, display).run()
        function.body = _without_repeats(_without_unread(function.body))


def _make_after_tries(form: f.Form, function: f.Function) -> None:
    """Builds a record of the last line of a `try` in its `else`. The `try` keeps the fields, which may raise."""
    set_in = f.stores(function.body)
    for statement in f.all_statements(function.body):
        if not (isinstance(statement, ast.Try) and statement.body and statement.orelse):
            continue
        made = statement.body[-1]
        name = f.variable_set(made)
        if not isinstance(made, ast.Assign) or set_in.get(name) != 1:
            continue
        display = display_of(made.value, form.constants)
        is_read_here = f.reads(statement.orelse, name) == f.reads(function.body, name)
        if display is None or not is_read_here:
            continue
        base = name.partition("_")[2]
        lines, elements = f.in_variables(
            display.elements,
            f.is_simple,
            lambda position, base=base: unused(f"item_{base}_{position}", set_in),  # type: ignore[misc]
            notes.operator(made),
        )
        if lines:
            first = statement.orelse[0]
            is_read_once = f.reads(function.body, name) == 1
            if isinstance(first, ast.Assign) and f.is_load_of(first.value, name) and is_read_once:
                made.targets = first.targets  # another name for the record
                del statement.orelse[0]
            made.value = replace(display, elements=elements).expression(form)
            statement.body[-1:] = f.with_comment(lines, notes.comment(made))
            statement.orelse.insert(0, made)


def _without_unread(block: f.Lines) -> f.Lines:
    """Removes copies of fields that are never read."""
    forks = [item for item in f.all_statements(block) if notes.is_fork(item)]
    copied = {item.target.id for item in forks if isinstance(item, f.CopyIfMutable)}
    unread = {name for name in copied if not f.reads(block, name)}

    def rewrite(statement: ast.stmt) -> f.Lines | None:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(statement, f.CopyIfMutable):
            target = statement.target
        return [] if isinstance(target, ast.Name) and target.id in unread else None

    return f.rewritten(block, rewrite) if unread else block


def _without_repeats(block: f.Lines) -> f.Lines:
    """A block in which no field is copied twice in a row."""
    done: f.Lines = []
    copied: set[str] = set()
    for statement in block:
        for inner in f.blocks(statement):
            inner[:] = _without_repeats(inner)
        if isinstance(statement, f.CopyIfMutable):
            if statement.target.id in copied:
                continue
            copied.add(statement.target.id)
        elif not isinstance(statement, f.Count):
            copied = set()
        done.append(statement)
    return done


def without_tests(
    form: f.Form, block: f.Lines, known: Mapping[str, ast.expr], types: Types
) -> f.Lines:
    """A block without the tests whether records are None or have a tag, of which it is `known` how they are built."""
    done: f.Lines = []
    for statement in block:
        for inner in f.blocks(statement):
            inner[:] = without_tests(form, inner, known, types)
        made, asks = done[-1] if done else None, notes.asks(statement)
        if asks is not None and isinstance(statement, ast.If) and f.variable_set(made):
            assert isinstance(made, ast.Assign)
            other = made.value.id if isinstance(made.value, ast.Name) else None
            display = display_of(known.get(other) if other else made.value, form.constants)
            asked = [made.targets[0], *(display.elements[:1] if display is not None else [])]
            # It may ask for another record, which was taken apart before.
            is_asked = bool(f.names_in([statement.test]) & f.names_in(asked))
            is_known = display is not None and (asks == "none" or _has_no_tag(display, types))
            if is_asked and (is_known or is_answered(asks, type_of(made.value, types))):
                is_negated = asks == "none" or isinstance(statement.test, ast.UnaryOp)
                done += statement.body if is_negated else statement.orelse
                continue
            if is_asked and asks == "tag" and display is not None and other is None:
                done[-1:] = _asking_first(form, made, statement)
        done.append(statement)
    return done


def _has_no_tag(display: Display, types: Types) -> bool:
    """Whether a record is certainly no pair of a tag and a value."""
    is_pair = display.shape is None and len(display.elements) == len(("tag", "value"))
    return not is_pair or type_of(display.elements[0], types) is not None


def _asking_first(form: f.Form, made: ast.Assign, asks: ast.If) -> f.Lines:
    """Makes the tag test read the pair's first element, in a variable. Returns the statements that build the pair."""
    assert isinstance(made.value, ast.Tuple)
    assert isinstance(made.targets[0], ast.Name)
    first, lines = made.value.elts[0], []
    if not isinstance(first, ast.Name):
        variable = f"item_{made.targets[0].id.partition('_')[2]}_0"
        lines = [f.let(variable, first, notes.operator(made))]
        made.value.elts[0] = first = f.name(variable)
    form.names.bind("OutputTag", "shared")
    test = f.expression(f"isinstance({first.id}, OutputTag)")
    is_negated = isinstance(asks.test, ast.UnaryOp)
    asks.test = ast.UnaryOp(ast.Not(), test) if is_negated else test
    return f.with_comment([*lines, made], notes.comment(made))


def _loop_over_fields(form: f.Form, function: f.Function, loop: f.ForEachResult) -> None:
    """Replaces the records of a flat map by their fields. The loop makes a record that is needed as a whole."""
    found, name, made = _records_of(form, function, loop.iterable), loop.target.id, loop.iterable
    if found is None or f.stores(function.body)[name] != 1:
        return
    display, rows = found
    types = types_of(function, form)
    uses = Uses(name, display)
    uses.block(loop.body, is_cold=False)
    is_tagged = loop.side is not None and not _has_no_tag(display, types)
    if is_tagged or uses.others or uses.cold > _MOST_COLD_USES:
        return
    is_whole = uses.whole + uses.cold > 0
    parts: dict[int, ast.expr] = {}
    kept: list[int] = []
    for place, fields in enumerate(zip(*rows, strict=True)):
        is_constant = isinstance(fields[0], ast.Constant) and len(set(map(ast.dump, fields))) == 1
        is_read = is_whole or place in uses.positions
        parts[place] = fields[0] if is_constant else ast.Constant(None)  # if it is never read
        if not is_constant and (is_read or not all(_is_there(field, types) for field in fields)):
            kept.append(place)
    base = name.partition("_")[2]
    variable = f"item_{base}_{kept[0]}" if len(kept) == 1 else f"fields_{base}"
    taken = [Display([row[place] for place in kept]) for row in rows]
    for number, place in enumerate(kept):
        item = f.name(variable)
        parts[place] = item if len(kept) == 1 else taken[0].read(item, number)
    items = [each.elements[0] if len(kept) == 1 else each.expression(form) for each in taken]
    if isinstance(made, (ast.ListComp, ast.GeneratorExp)):
        (made.elt,) = items
        made = _without_copying(made, types)
    elif display.shape is None and len(kept) == len(parts) > 1:
        return
    else:
        made = ast.Tuple(items, ast.Load())
    loop.side, loop.target, loop.iterable = None, f.target(variable), made
    record = replace(display, elements=list(parts.values())).expression(form)
    if uses.whole or uses.cold or uses.keeps:
        loop.body.insert(0, f.let(name, record, notes.operator(loop)))
    else:
        loop.body = f.changed(loop.body, field_reads(display, name, parts))


def _without_copying(made: ast.ListComp | ast.GeneratorExp, types: Types) -> ast.expr:
    """`words` for `[word for word in words]`."""
    (only,) = made.generators if len(made.generators) == 1 else (None,)
    if only is None or only.ifs or only.is_async or text_of(only.target) != text_of(made.elt):
        return made
    is_list = isinstance(type_of(only.iter, types), IterableOf)
    return only.iter if is_list or isinstance(made, ast.GeneratorExp) else made


def _records_of(
    form: f.Form, function: f.Function, iterable: ast.expr
) -> tuple[Display, list[Sequence[ast.expr]]] | None:
    """The common display of the records of a loop, and the fields of each; None if the records differ or are not known."""
    known = f.values_set_once(function.body)
    rows: list[Sequence[ast.expr]] = []
    displays: list[Display] = []
    is_made = isinstance(iterable, (ast.ListComp, ast.GeneratorExp))
    is_listed = isinstance(iterable, (ast.Tuple, ast.List))
    for element in [iterable.elt] if is_made else iterable.elts if is_listed else ():  # type: ignore[attr-defined]
        held = element.id if isinstance(element, ast.Name) and not is_made else None
        display = display_of(known.get(held) if held else element, form.constants)
        if display is None or display.names:
            return None
        row = display.elements
        if held:
            uses = Uses(held, display)
            uses.block(function.body, is_cold=False)
            if display.is_mutable and uses.others + uses.cold + uses.whole > 1:
                return None  # it may have changed
            row = [display.read(element, position) for position in range(len(row))]
        rows.append(row)
        displays.append(display)
    alike = {(display.shape, len(display.elements)) for display in displays}
    return (displays[0], rows) if len(alike) == 1 and rows[0] else None


def _is_there(node: ast.expr, types: Types) -> bool:
    """Whether an expression can be left out: it only gives a value."""
    return notes.is_field(node) or never_raises(node, types)


def _candidate(form: f.Form, function: f.Function, done: set[str]) -> tuple[str, Display] | None:
    set_in = f.stores(function.body)
    for statement in f.all_statements(function.body):
        name = f.variable_set(statement)
        if set_in.get(name) != 1 or name in done:
            continue
        display = display_of(statement.value, form.constants)  # type: ignore[attr-defined]
        if display is not None and _is_read_behind(statement, name, function.body):
            return name, display
    return None


def _is_read_behind(setting: ast.stmt, name: str, body: f.Lines) -> bool:
    """Whether a variable is only read behind the statement that sets it, in the same block or in blocks in this one."""
    (block,) = (block for block in f.all_blocks(body) if any(item is setting for item in block))
    return f.reads(block, name) == f.reads(body, name)


class _UnpackedRecord:
    """One variable of a function that is set to a record."""

    def __init__(self, form: f.Form, function: f.Function, name: str, display: Display) -> None:
        self.form = form
        self.function = function
        self.name = name
        self.display = display
        self.forks: set[str] = set()

    def run(self) -> None:
        uses = Uses(self.name, self.display)
        uses.block(self.function.body, is_cold=False)
        if not (uses.items or uses.whole):
            return
        is_made = uses.others > 0 or uses.cold > _MOST_COLD_USES
        if is_made and (uses.keeps or not uses.items or self.display.is_mutable):
            return
        self.is_made = is_made
        self.types = types_of(self.function, self.form)
        self.owned = owned_of(self.function, self.types)
        self.is_kept = uses.keeps > 0
        self.uses = uses_of(self.function.body) if self.is_kept else Counter()
        self.needed = uses.positions
        if is_made or uses.whole or uses.cold:
            self.needed = set(range(len(self.display.elements)))
        self.stable = {
            variable
            for variable, times in f.stores(self.function.body).items()
            if times == 1 or stem(variable) == "field_of"  # set before anybody reads it
        }
        self.function.body = self._block(self.function.body)

    def _block(self, block: f.Lines) -> f.Lines:
        """Rewrites the block in which the record is made, with the statements after that and the blocks in it."""
        done: f.Lines = []
        for position, statement in enumerate(block):
            if isinstance(statement, ast.Assign) and self._is_own(statement.targets[0]):
                lines, elements = self._elements(statement)
                rest = block[position + 1 :]
                made = replace(self.display, elements=elements).expression(self.form)
                whole = None if self.is_made else made
                rest = f.rewritten(rest, partial(self._kept, elements))
                if not self.is_made:
                    rest = f.rewritten(rest, partial(self._forked, elements))
                rest = f.changed(rest, field_reads(self.display, self.name, elements, whole))
                comment = notes.comment(statement)
                if self.is_made:
                    lines.append(f.let(self.name, made, notes.operator(statement)))
                if comment and lines:
                    f.with_comment(lines, comment)
                elif comment:
                    f.with_comment(rest, comment)
                return [*done, *lines, *rest]
            for inner in f.blocks(statement):
                inner[:] = self._block(inner)
            done.append(statement)
        return done

    def _is_own(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self.name

    def _kept(self, elements: list[ast.expr], statement: ast.stmt) -> f.Lines | None:
        """A copy of the record is one of its elements."""
        if not isinstance(statement, f.CopyIfMutable) or statement.target.id != self.name:
            return None
        read = (item for place, item in enumerate(elements) if place in self.needed)
        names = dict.fromkeys(item.id for item in read if isinstance(item, ast.Name))
        kept: f.Lines = [
            f.made(f.CopyIfMutable, target=f.target(name))
            for name in names
            if name not in self.owned
        ]
        return f.marked(kept, notes.operator(statement))

    def _forked(self, elements: list[ast.expr], statement: ast.stmt) -> f.Lines | None:
        """A reader's own record at a fork has its own elements, and needs no other copy."""
        if isinstance(statement, f.CopyIfMutable) and statement.target.id in self.forks:
            return []
        if not is_fork_of(statement, self.name):
            return None
        assert isinstance(statement, ast.Assign)
        (copied,) = statement.targets
        assert isinstance(copied, ast.Name)
        self.forks.add(copied.id)
        operator = notes.operator(statement)
        lines: f.Lines = []
        own: list[ast.expr] = []
        for position, item in enumerate(elements):
            own.append(item)
            if isinstance(item, ast.Name) and not is_frozen(self.types.get(item.id)):
                variable = f"item_{copied.id.partition('_')[2]}_{position}"
                own[-1] = f.name(variable)
                lines.append(f.let(variable, item, operator))
                lines.append(f.made(f.CopyIfMutable, target=f.target(variable), is_fork=True))
        made = replace(self.display, elements=own).expression(self.form)
        return f.marked([*lines, f.let(copied.id, made, operator)], operator)

    def _elements(self, statement: ast.Assign) -> tuple[f.Lines, list[ast.expr]]:
        """Variables for the elements that are none yet."""
        base = self.name.partition("_")[2] or "0"
        return f.in_variables(
            self.display.elements,
            self._stays,
            lambda position: unused(f"item_{base}_{position}", self.stable),
            notes.operator(statement),
        )

    def _stays(self, position: int, item: ast.expr) -> bool:
        if position not in self.needed and _is_there(item, self.types):
            return True
        is_stable = isinstance(item, ast.Name) and item.id in self.stable
        return isinstance(item, ast.Constant) or (is_stable and self._is_free(item.id))  # type: ignore[attr-defined]

    def _is_free(self, name: str) -> bool:
        """Whether a variable may refer to a copy from then on: its object is only used in this record."""
        if not self.is_kept or name in self.owned:
            return True
        return sum(times for part, times in self.uses.items() if part[0] == name) <= 1
