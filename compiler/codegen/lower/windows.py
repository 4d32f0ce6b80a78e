"""The code of windows: how a record is added to them, and what happens when they fire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.lower.lowering import Lowering, Place, comment
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
from opchain.runtime.program.vertex_program import NO_OPERATOR, OperatorProgram
from opchain.runtime.time import MAX_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable

_PROCESS_WINDOW = (ProcessWindowFunction, ProcessAllWindowFunction)


def lower_window(
    lowering: Lowering, operator: OperatorProgram, place: Place, number: int
) -> f.Lines:
    """Windows of time or of a count, with the default trigger, are written out. All others are called."""
    spec = operator.spec
    assert isinstance(spec, specs.WindowSpec)
    index = operator.index
    write = _window_writer(lowering, operator)
    called = lowering.call(operator, place, number) if write is None else []
    lowering.add_emit_function(operator)
    lowering.emit_sides(operator)
    if spec.function is not None and (has_plain_windows(spec) or has_plain_sessions(spec)):
        lowering.later(f"fire_{index}", lambda: _fire_function(lowering, operator))
    if write is None:
        return called
    selected = """
        key = selected
        if key.__class__ not in op.plain:
            key = op.identify(key)
        """
    lines = lowering.code(operator, place, selected, selected=lowering.key_of(operator, place, 0))
    if spec.assigner.is_event_time():
        refused = """
            if time is None:
                op.refuse(value)
            """
        lines += lowering.code(operator, place, refused)
    return [*f.with_comment(lines, comment(operator)), *write(lowering, operator, place)]


def _window_writer(
    lowering: Lowering, operator: OperatorProgram
) -> Callable[[Lowering, OperatorProgram, Place], f.Lines] | None:
    """The function that writes the code with which a window operator adds records; None if it is called instead.

    In batch mode, the code notifies most of these operators when the next key begins.
    """
    spec, is_batch = operator.spec, lowering.program.is_batch
    assert isinstance(spec, specs.WindowSpec)
    takes_state = adds_with_state(spec)
    if has_plain_counts(spec) and not takes_state:
        return _counted
    if operator.timestamps and is_aligned(spec, is_batch=is_batch):
        return _aligned
    if operator.timestamps and has_plain_sessions(spec) and not is_batch:
        return _session
    is_plain = has_plain_processing_time(spec) and not is_batch and not takes_state
    return _processing_time if is_plain else None


def _processing_time(lowering: Lowering, operator: OperatorProgram, place: Place) -> f.Lines:
    """The code of `ProcessingTimeWindowOperator.process_element`, after its key is known."""
    text = """
        for pane in op.open_panes():
            if key not in pane:
                op.await_end(key, pane)
            add
        """
    add = _add(lowering, operator, place, "contents.kind", "pane.get(key)", "pane[key]")
    return lowering.code(operator, place, text, add=add)


def _counted(lowering: Lowering, operator: OperatorProgram, place: Place) -> f.Lines:
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
    added = _add(lowering, operator, place, "contents.kind", held, held)
    if not is_tumbling:
        each = """
            for window in (*counts.later, counts):
                added
            """
        added = lowering.code(operator, place, each, added=added)
    return lowering.code(operator, place, text, added=added)


def _session(lowering: Lowering, operator: OperatorProgram, place: Place) -> f.Lines:
    """The code of `SessionWindowOperator.process_element`, after its key is known."""
    index, assigner = operator.index, operator.spec.assigner  # type: ignore[attr-defined]
    lowering.function.before += f.statements(
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
    add = _add(lowering, operator, place, "contents.kind", "session.held", "session.held")
    return lowering.code(operator, place, text, add=add)


def _aligned(lowering: Lowering, operator: OperatorProgram, place: Place) -> f.Lines:
    """The code of `AlignedWindowOperator.process_element`, after its key is known.

    The operator itself handles windows that are new, late or have fired (`pane_for`, `panes_for`).
    """
    size, slide, offset = operator.spec.assigner.pace  # type: ignore[attr-defined]
    add = _add(lowering, operator, place, "contents", "pane.get(key)", "pane[key]")
    since = f"(time - {offset})" if offset else "time"
    start = lowering.code(operator, place, f"start = time - {since} % {slide}")
    if slide < size:
        text = """
            panes = op.panes_since.get(start)
            if panes is None:
                panes = op.panes_for(start, key, value, time)
            for pane in panes:
                add
            """
        return [*start, *lowering.code(operator, place, text, add=add)]
    text = """
        pane = op.panes.get(start)
        if pane is None:
            pane = op.pane_for(start, key, value, time)
        if pane is not None:
            add
        """
    inside = lowering.code(operator, place, text, add=add)
    if slide > size:
        text = f"""
            if time - start >= {size}:
                op.skip(value, time)
            else:
                inside
            """
        between = lowering.code(operator, place, text, inside=inside)
        inside = f.with_comment(between, "between two windows")
    return [*start, *inside]


def _add(
    lowering: Lowering,
    operator: OperatorProgram,
    place: Place,
    contents: str,
    read: str,
    entry: str,
) -> f.Lines:
    """Takes the record into the key's contents at `entry`, as the class at `contents` does."""
    index = operator.index
    spec = operator.spec
    assert isinstance(spec, specs.WindowSpec)
    held = f.name(f"held_{index}")
    owner = lowering.names.bind(f"self_{index}", "window_function", index)
    if spec.reduce is not None:
        name = lowering.names.function(spec.reduce, "reduce", index)
        lowering.names.bind(name, "attribute", index, f"{contents}.reduce")
        path = ("attribute", index, f"{contents}.first")
        text = f"""
            held = {read}
            if held is None:
                held = begin
            else:
                held = reduced
            {entry} = held
            """
        return lowering.code(
            operator,
            place,
            text,
            begin=lowering.first_of(spec.reduce, f"first_{index}", path, place.record)
            or place.record,
            reduced=lowering.call_of(name, spec.reduce, "reduce", held, place.record, owner=owner),
        )
    if spec.aggregate is not None:
        create = lowering.names.bind(f"create_{index}", "attribute", index, f"{contents}.create")
        name = lowering.names.function(spec.aggregate, "add", index)
        lowering.names.bind(name, "attribute", index, f"{contents}.fold_in")
        text = f"""
            held = {read}
            if held is None:
                held = begin
            held = added
            {entry} = held
            """
        return lowering.code(
            operator,
            place,
            text,
            begin=lowering.call_of(create, spec.aggregate, "create_accumulator", owner=owner),
            added=lowering.call_of(name, spec.aggregate, "add", place.record, held, owner=owner),
        )
    text = f"""
        held = {read}
        if held is None:
            {entry} = [value]
        else:
            held.append(value)
        """
    return lowering.code(operator, place, text)


def _fire_function(lowering: Lowering, operator: OperatorProgram) -> None:
    """The loop over the keys of a window that fires, in place of `WindowEvaluation.emit_all`.

    Replaces `emit_each` if each key has its own window.
    """
    index, spec = operator.index, operator.spec
    assert isinstance(spec, specs.WindowSpec)
    has_one_window = is_aligned(spec, is_batch=lowering.program.is_batch)
    arguments = "due, window, timestamp" if has_one_window else "due"
    windows = "a window that fires" if has_one_window else "windows that fire"
    about = f"Results of '{operator.name}' for {windows}"
    function = lowering.open_function(f"fire_{index}", arguments, about, is_batch=True)
    method = "process" if isinstance(spec.function, _PROCESS_WINDOW) else "apply"
    owner = lowering.names.bind(f"self_of_{index}", "attribute", index, "evaluation.function")
    name = lowering.names.bind_function(
        spec.function, "window", str(index), "window_method", index, method
    )
    key, elements, window = (f.name(f"key_{index}"), f.name(f"elements_{index}"), f.name("window"))
    if method == "process":
        context = lowering.names.bind(f"context_{index}", "attribute", index, "evaluation.context")
        window = f.name(context)
    arguments_of_call = [*([] if spec.is_all else [key]), window, elements]
    call = lowering.call_of(name, spec.function, method, *arguments_of_call, owner=owner)
    place = Place("", "timestamp", in_batch=False)
    emits = lowering.emits_fired(operator, place, call)
    if has_one_window:
        shown = f"{key.id}, held_{index}"
        body = _evaluated(lowering, operator, place, emits)
    else:
        shown = f"{key.id}, window, {elements.id}"
        body = [*f.statements("timestamp = window.max_timestamp()", index), *emits]
    (loop,) = function.body = f.statements(f"for {shown} in due:\n    pass", index)
    loop.body = f.marked(body, index)  # type: ignore[attr-defined]


def _evaluated(
    lowering: Lowering, operator: OperatorProgram, place: Place, emits: f.Lines
) -> f.Lines:
    """Makes the key current, and gives the contents of its window to `emits`, as `Contents.elements` does."""
    index, spec = operator.index, operator.spec
    assert isinstance(spec, specs.WindowSpec)
    lowering.names.bind(f"set_state_key_{index}", "set_state_key", index)
    lines = lowering.code(
        operator,
        place,
        """
        set_state_key(key)
        if key.__class__ not in op.plain:
            key = key_of(key)
        """,
        key_of=f.name(lowering.names.bind("key_of", "shared")),
    )
    if spec.aggregate is not None:
        name = lowering.names.bind_function(
            spec.aggregate, "get_result", str(index), *("attribute", index, "contents.result_of")
        )
        owner = lowering.names.bind(f"self_{index}", "window_function", index)
        text = """
            if held is not None:
                result = got
                if result is not None:
                    elements = (result,)
                    emits
            """
        got = lowering.call_of(
            name, spec.aggregate, "get_result", f.name(f"held_{index}"), owner=owner
        )
        return [*lines, *lowering.code(operator, place, text, got=got, emits=emits)]
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
    return [*lines, *lowering.code(operator, place, text, emits=emits)]
