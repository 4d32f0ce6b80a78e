"""Turns generated source into functions. They are compiled once per worker process, and shown in tracebacks."""

from __future__ import annotations

import builtins
import inspect
import json
import linecache
import operator
from functools import lru_cache, partial
from itertools import islice
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import ChangedCodeError
from opchain.runtime.operators.process import is_tagged
from opchain.runtime.records import arrays
from opchain.runtime.records.columns import Columns
from opchain.runtime.records.json_texts import JsonFields, fast_loads
from opchain.runtime.records.record_copy import IMMUTABLE, own_copy, plain_value
from opchain.runtime.state.keyed.keyed_backend import VOID
from opchain.runtime.state.keyed.ttl_states import NOTHING
from opchain.runtime.state.keys.key_identity import key_of
from opchain.runtime.time import MIN_LONG_VALUE, timer_millis
from opchain.runtime.types.coders import coder_converter, fitting, fitting_each
from opchain.runtime.types.output_tag import OutputTag
from opchain.runtime.types.row import row_of

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping, Sequence

    from opchain.runtime.operators.operator import Output
    from opchain.runtime.task.operator_chain import OperatorChain


def fast_dumps() -> Callable[[Any], str]:
    """A function like `json.dumps` with one argument, which creates its encoder only once."""
    make = getattr(json.encoder, "c_make_encoder", None)
    standard: Any = getattr(json, "_default_encoder", None)
    if make is None or type(standard) is not json.JSONEncoder:  # without C, or replaced by the user
        return json.dumps
    text = json.encoder.encode_basestring_ascii
    encode = make(None, _refuse, text, None, ": ", ", ", False, False, True)
    join = "".join

    def dumps(value: Any) -> str:
        try:
            return join(encode(value, 0))
        except Exception:  # noqa: BLE001 - json.dumps decides
            return json.dumps(value)

    return dumps


def _refuse(value: Any) -> Any:
    raise TypeError(value)


def json_object(fields: Sequence[str]) -> Callable[..., str]:
    """A function that writes one value per field like `json.dumps` writes the dictionary.

    Three ints take 0.5 microseconds, and 2.3 with `json.dumps`.
    """
    dumps, text = fast_dumps(), json.encoder.encode_basestring_ascii

    def write(value: Any) -> str:
        return text(value) if value.__class__ is str else dumps(value)

    keys = ", ".join(text(field).replace("%", "%%") + ": %s" for field in fields)
    names = [f"value_{number}" for number in range(len(fields))]
    values = ", ".join(f"{name} if {name}.__class__ is int else write({name})" for name in names)
    source = f"lambda {', '.join(names)}: template % ({values},)"
    found: Callable[..., str] = eval(source, {"template": f"{{{keys}}}", "write": write})  # noqa: S307 - our own text
    return found


class _Absent:
    """Stands for a missing value, because None is a valid value."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()

SHARED_NAMES: dict[str, Any] = {
    "ABSENT": ABSENT,
    "Columns": Columns,
    "IMMUTABLE": IMMUTABLE,
    "NOTHING": NOTHING,
    "NO_TIMESTAMP": MIN_LONG_VALUE,
    "OutputTag": OutputTag,
    "VOID": VOID,
    "islice": islice,
    "is_tagged": is_tagged,
    "key_of": key_of,
    "new_tuple": tuple.__new__,
    "own_copy": own_copy,
    "plain_value": plain_value,
    "row_of": row_of,
    "timer_millis": timer_millis,
}
"""The names that every generated module can use."""


MOST_SHOWN = 1024
"""The number of generated files whose lines tracebacks show, and whose code is cached."""

_shown: dict[str, None] = {}


@lru_cache(maxsize=MOST_SHOWN)
def compiled(source: str, file_name: str) -> CodeType:
    """The code object of a generated module."""
    return compile(source, file_name, "exec", dont_inherit=True)


def show_in_tracebacks(source: str, file_name: str) -> None:
    """Lets tracebacks and debuggers show generated lines.

    Called for each task, since vertices of the same name share a file name. The entry's mtime is None, so that
    `linecache.checkcache` keeps it. The oldest entries are removed. So the memory of a process does not grow with the
    number of jobs that it has run.
    """
    _shown.pop(file_name, None)
    _shown[file_name] = None
    for oldest in list(_shown)[:-MOST_SHOWN]:
        _shown.pop(oldest, None)
        linecache.cache.pop(oldest, None)
    linecache.cache[file_name] = (len(source), None, source.splitlines(keepends=True), file_name)


def bind_generated_code(chain: OperatorChain) -> None:
    """Adds the functions of the vertex's generated module to the chain.

    - `process_N` takes the batches of the head's input N.
    - `emit_I` takes the records that operator I emits outside record processing.
    - `emit_I_S` takes the records for side output number S of operator I.
    - `batch_I` takes the results of a batch function.
    - `fire_I` takes the keys of a window that fires.
    - `in_any_order_0` says whether batch mode need not sort a batch.
    """
    program = chain.program
    assert program.source is not None
    module: dict[str, Any] = {"__name__": program.file_name, **SHARED_NAMES}
    for name, (kind, *where) in program.names.items():
        if kind != "shared":
            module[name] = _MEANINGS[kind](chain, *where)
    show_in_tracebacks(program.source, program.file_name)
    exec(compiled(program.source, program.file_name), module)  # noqa: S102 - our own text
    for number in range(max(1, len(chain.head.program.keys))):
        if f"process_{number}" in module:
            _bind_input(chain, number, module[f"process_{number}"])
    chain.takes_any_order = module.get("in_any_order_0")
    for index, output in enumerate(chain.outputs):
        if f"emit_{index}" in module:
            output.collect = module[f"emit_{index}"]
        if f"batch_{index}" in module:
            chain.operators[index].emit_batch = module[f"batch_{index}"]  # type: ignore[attr-defined]
        if f"fire_{index}" in module:
            owner: Any = chain.operators[index]
            getattr(owner, "evaluation", owner).fire = module[f"fire_{index}"]
        for tag in output.sides:
            output.sides[tag] = module[f"emit_{index}_{side_number(chain, index, tag)}"]


def _bind_input(chain: OperatorChain, number: int, function: Callable[..., Any]) -> None:
    if inspect.isgeneratorfunction(function):
        chain.turn_functions[number] = function
        function = partial(_in_one_turn, function)
    chain.batch_functions[number] = function


def _in_one_turn(function: Callable[..., Any], values: Any, *times: Any) -> None:
    """Processes a whole batch by a generator that processes turns."""
    turns = function(values, *times)
    next(turns)
    if len(values):
        turns.send(len(values))
    turns.send(0)


def side_number(chain: OperatorChain, index: int, tag: str) -> int:
    """The number of a side output among the side outputs of its operator that are read."""
    return side_tags(chain.program, index).index(tag)


def side_tags(program: Any, index: int) -> list[str]:
    """The tags of an operator's side outputs that are read, in the order of their readers."""
    outputs = [item.tag for item in program.outputs if item.operator == index]
    children = [item.tag for item in program.operators if item.parent == index]
    return list(dict.fromkeys(tag for tag in outputs + children if tag is not None))


def _found(chain: OperatorChain, path: tuple[Any, ...]) -> Any:
    """The object that a name of generated code refers to."""
    kind, *where = path
    return _MEANINGS[kind](chain, *where)


def _window_function(spec: Any) -> Any:
    """The function that folds records into a window."""
    return spec.aggregate if spec.aggregate is not None else spec.reduce


def _global(function: Any, names: tuple[str, ...]) -> Any:
    """The current value of a global name of a function, or of an attribute of this value."""
    spaces = _spaces(function, names)
    space, name = spaces[-1]
    return space[name]


def _free(function: Any, name: str) -> Any:
    """The value of a variable of the enclosing function."""
    plain = getattr(function, "__func__", function)
    return plain.__closure__[plain.__code__.co_freevars.index(name)].cell_contents


def _inner(function: Any, place: int) -> FunctionType:
    """A lambda without closure that a function defines, by the place among the constants of the function."""
    plain = getattr(function, "__func__", function)
    return FunctionType(plain.__code__.co_consts[place], plain.__globals__)


def _spaces(function: Any, names: tuple[str, ...]) -> list[tuple[Any, str]]:
    """The dictionaries in which a global name of a function, and attributes of its value, are looked up."""
    plain = getattr(function, "__func__", function)
    is_builtin = names[0] not in plain.__globals__
    found = [(vars(builtins) if is_builtin else plain.__globals__, names[0])]
    for name in names[1:]:
        space, key = found[-1]
        found.append((vars(space[key]), name))
    return found


def _state_table(
    operator: Any,
    name: str,
    kind: str,
    declared: str | None,
    sets_keys: bool,
    digests: tuple[tuple[str, str], ...],
) -> Callable[[], MutableMapping[Any, Any] | None]:
    """A function that returns the dictionary of a state, which an attribute of an operator's function holds.

    It returns None if functions of the state have other digests than those that the code contains.
    """
    as_compiled: Any = None

    def found() -> MutableMapping[Any, Any] | None:
        nonlocal as_compiled
        state = vars(operator.function).get(name)
        entries: MutableMapping[Any, Any] | None = operator.context.keyed_state.plain_entries(
            state, kind, declared, touches=True, sets_keys=sets_keys
        )
        if entries is not None and as_compiled is not state:
            if any(digest_of(state.functions[each]) != digest for each, digest in digests):
                return None
            as_compiled = state
        return entries

    return found


def _state_ttl(operator: Any, name: str) -> tuple[Any, int, Any, Any]:
    """What look-ups in a state with a time to live need: see ttl_states.py. `read_all` is of map states only."""
    state = vars(operator.function)[name]
    return state.accessed, state.unchanged_ms, state.read_at, getattr(state, "read_all", None)


def _tracks_changes(operator: Any) -> bool:
    tracks: bool = operator.context.keyed_state.tracks_changes
    return tracks


_DATA = frozenset({dict, list, set, frozenset, tuple, int, float, str, bytes, bool, type(None)})


class Watched:
    """Checks that global names and attributes still have the values that generated code assumes.

    An entry of `watched` for global names has the path to a function, the names, and the expected value: the digest of a
    function's code, the text of a constant, or None for any value. An entry for an attribute has the path to an object,
    the attribute, and the text of the constant. If the text is None, the object itself must not have the attribute: the
    value is that of its class.

    Senders may omit fields that the generated code does not read (`lack_fields`). Other code cannot process such records,
    so a change of a function or a class is then an error. Other data, such as another dictionary, is none: the functions
    read the same fields, whatever the data is.
    """

    def __init__(
        self, chain: OperatorChain, watched: tuple[tuple[Any, ...], ...], lack_fields: bool = False
    ) -> None:
        self._lack_fields = lack_fields
        self._expected: list[tuple[Any, str, Any]] = []
        self._is_as_compiled = True
        for path, names, digest, is_attribute in watched:
            found = _found(chain, path)
            if is_attribute:
                space = getattr(found, "__dict__", {})
                expected = ABSENT if digest is None else space.get(names, ABSENT)
                self._expected.append((space, names, expected))
            else:
                spaces = _spaces(found, names)
                self._expected += [(space, name, space[name]) for space, name in spaces]
            if digest is not None and digest_of(self._expected[-1][2]) != digest:
                self._is_as_compiled = False

    def is_unchanged(self) -> bool:
        """Whether all names still have their expected values."""
        for space, name, expected in self._expected:
            if space.get(name, ABSENT) is not expected:
                if type(expected) in _DATA:
                    return False
                return self._changed(f"{name!r} was replaced while the job ran")
        return self._is_as_compiled or self._changed("a function differs from that of the driver")

    def _changed(self, what: str) -> bool:
        if self._lack_fields:
            raise ChangedCodeError(
                f"{what}, but the records lack the fields that the program did not read when it was compiled; "
                f"set opchain.codegen.without to send_fields,read_json"
            )
        return False


def digest_of(value: Any) -> str:
    """A text that identifies a function's code, or a constant."""
    # A property and a static method have the function in an attribute.
    function = getattr(value, "fget", getattr(value, "__func__", value))
    if isinstance(function, FunctionType):
        given = [
            item if item.__class__ in IMMUTABLE else item.__class__
            for item in function.__defaults__ or ()
        ]
        return repr((code_key(function.__code__), given))
    return repr(value)


def code_key(code: CodeType) -> tuple[Any, ...]:
    """A key that is equal for code objects that do the same, at any place in a file."""
    constants = []
    within: CodeType | None = None
    for item in code.co_consts:
        # Python 3.10 stores the qualified name of an inner function after its code. It depends on the outer function,
        # so it is left out.
        if within is None or item != _qualified_name(item, within):
            key = code_key(item) if isinstance(item, CodeType) else (type(item), repr(item))
            constants.append(key)
        within = item if isinstance(item, CodeType) else None
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    flags = code.co_flags & (
        inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    )
    return (code.co_code, tuple(constants), names, code.co_argcount, flags)


def _qualified_name(item: Any, within: CodeType) -> str | None:
    is_name = isinstance(item, str) and item.endswith(f".<locals>.{within.co_name}")
    return item if is_name else None


def _method(function: Any, method: str) -> Any:
    """A method of a Function; for a plain callable, the callable itself."""
    return getattr(function, method, function)


def _owner(function: Any) -> Any:
    """The object of a bound method; for a Function, the Function itself."""
    return getattr(function, "__self__", function)


def _collect_tagged(output: Output) -> Callable[[tuple[Any, Any], int | None], None]:
    def collect_tagged(result: tuple[Any, Any], timestamp: int | None) -> None:
        output.collect_to(result[0].tag_id, result[1], timestamp)

    return collect_tagged


_MEANINGS: dict[str, Callable[..., Any]] = {
    "operator": lambda chain, index: chain.operators[index],
    "attribute": lambda chain, index, name: operator.attrgetter(name)(chain.operators[index]),
    "method": lambda chain, index, method: _method(chain.operators[index].function, method),
    "process": lambda chain, index, number: chain.operators[index].input(number),
    "set_key": lambda chain, index: chain.operators[index].context.keyed_state.set_current_key,
    "set_state_key": lambda chain, index: (
        chain.operators[index].context.keyed_state.set_current_state_key
    ),
    "keyed_state": lambda chain, index: chain.operators[index].context.keyed_state,
    "key": lambda chain, index, number: chain.operators[index].program.keys[number].selector,
    "context": lambda chain, index: chain.operators[index].function_context,
    "field_converter": lambda chain, index, position: coder_converter(
        chain.operators[index].program.record_type.field_types[position]
    ),
    "fits": lambda _chain, declared: fitting(declared),
    "fits_each": lambda _chain, declared: fitting_each(declared),
    "as_tagged": lambda chain, index, tag: chain.outputs[index].side_converters[tag],
    "collect_tagged": lambda chain, index: _collect_tagged(chain.outputs[index]),
    "plain_keys": lambda chain, index: chain.operators[index].context.keyed_state.identity.plain,
    "plain_fields": lambda chain, index: (
        chain.operators[index].context.keyed_state.identity.plain_fields
    ),
    "identify": lambda chain, index: chain.operators[index].context.keyed_state.identity.of,
    "event_timers": lambda chain, index: chain.operators[index].event_timers,
    "table": lambda chain, index: chain.operators[index].table,
    "touch": lambda chain, index: chain.operators[index].context.keyed_state.touch,
    "touching": lambda chain, index: chain.operators[index].context.keyed_state.touching,
    "tracks_changes": lambda chain, index: partial(_tracks_changes, chain.operators[index]),
    "state_table": lambda chain, index, *where: _state_table(chain.operators[index], *where),
    "broadcast_state": lambda chain, index: chain.operators[index].states.look_ups,
    "state_functions": lambda chain, index, name: (
        lambda: vars(chain.operators[index].function)[name].functions
    ),
    "state_ttl": lambda chain, index, name: partial(_state_ttl, chain.operators[index], name),
    "sums": lambda chain, index, *layout: chain.operators[index].keep_sums(*layout),
    "output_key": lambda chain, number: chain.pending[number].select_key,
    "values": lambda chain, number: chain.pending[number].values,
    "timestamps": lambda chain, number: chain.pending[number].timestamps,
    "keys": lambda chain, number: chain.pending[number].keys,
    "column": lambda chain, number, layout, position, is_key, shape=None, is_array=False: (
        chain.pending[number].column(layout, position, shape, is_key=is_key, is_array=is_array)
    ),
    "combined": lambda chain, number: chain.pending[number].combined,
    "combined_sums": lambda chain, number, *layout: chain.pending[number].keep_sums(*layout),
    "counted_keys": lambda chain, number, layout, shape=None, is_array=False: chain.pending[
        number
    ].count_keys(layout, shape, is_array=is_array),
    "output_plain_keys": lambda chain, number: chain.pending[number].identity.plain,
    "output_plain_fields": lambda chain, number: chain.pending[number].identity.plain_fields,
    "output_identify": lambda chain, number: chain.pending[number].identity.of,
    "window_folds": lambda chain, number, name, *how: getattr(
        chain.pending[number].folded(*how), name
    ),
    "window_omissions": lambda chain, number: chain.pending[number].omissions().run_for,
    "combine": lambda chain, number: chain.pending[number].reduce,
    "combine_first": lambda chain, number: chain.pending[number].first,
    "flush_batch": lambda chain, index: chain.sink_pending[index].flush,
    "sink_values": lambda chain, index: chain.sink_pending[index].values,
    "sink_timestamps": lambda chain, index: chain.sink_pending[index].timestamps,
    "value": lambda _chain, value: value,
    "function": lambda chain, index: chain.operators[index].function,
    "window_method": lambda chain, index, method: _method(
        chain.operators[index].evaluation.function, method
    ),
    "window_function": lambda chain, index: _window_function(chain.operators[index].spec),
    "owner_of": lambda chain, path: _owner(_found(chain, path)),
    "attribute_of": lambda chain, path, name: operator.attrgetter(name)(_found(chain, path)),
    "class_with": lambda chain, path, name: next(
        kind for kind in type(_found(chain, path)).__mro__ if name in vars(kind)
    ),
    "global": lambda chain, path, names: _global(_found(chain, path), names),
    "free": lambda chain, path, name: _free(_found(chain, path), name),
    "inner": lambda chain, path, place: _inner(_found(chain, path), place),
    "numbers_of": lambda _chain: arrays.numbers_of(),
    "interleaved": lambda _chain: arrays.interleaved,
    "has_plain": lambda _chain: arrays.has_plain,
    "fast_loads": lambda _chain: fast_loads(),
    "fast_dumps": lambda _chain: fast_dumps(),
    "json_object": lambda _chain, fields: json_object(fields),
    "json_fields": lambda _chain, fields, has_no_others: (
        JsonFields(fields, has_no_others=has_no_others).read
    ),
    "unchanged": lambda chain, watched, lack_fields: (
        Watched(chain, watched, lack_fields).is_unchanged
    ),
}
