"""Pickles functions and sources for other processes, and explains which part cannot be pickled.

A function or class is pickled by name if its module can be imported, and by value otherwise: lambdas, nested functions,
and everything in the main program. runtime/spark/worker_path.py decides which modules executors can import. A source
lists its files or partitions once, on the driver, before its vertex is sent.

Pickle only names the type that it refuses. To find the path to the object, a search starts at the function, and in each
step follows the first part that cannot be pickled.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import types
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import InternalError, UnpicklableFunctionError, add_note, short_repr
from opchain.runtime.program.operator_specs import InputFormatSourceSpec, SourceSpec
from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram, VertexProgram
from opchain.runtime.records.function_pickle import dump_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


def with_planned_sources(vertex: VertexProgram) -> VertexProgram:
    """The vertex with planned sources: `planned` was called on them. Flink: the start of a `SplitEnumerator`.

    Raises:
        Exception: An error of a source, such as a missing file.
    """
    parallelism = vertex.parallelism
    return replace(
        vertex,
        operators=tuple(_planned(operator, parallelism) for operator in vertex.operators),
        chained_sources=tuple(
            replace(source, operator=_planned(source.operator, parallelism))
            for source in vertex.chained_sources
        ),
    )


def _planned(program: OperatorProgram, parallelism: int) -> OperatorProgram:
    spec = program.spec
    try:
        if isinstance(spec, SourceSpec):
            return replace(program, spec=replace(spec, source=spec.source.planned(parallelism)))
        if isinstance(spec, InputFormatSourceSpec):
            planned = spec.function.planned(parallelism)
            return replace(program, spec=replace(spec, function=planned))
    except Exception as error:
        add_note(error, f"while planning {program.label}")
        raise
    return program


MOST_STEPS = 50
"""The maximum length of a path: structures that contain themselves have no end."""


@dataclass(frozen=True, slots=True)
class Unpicklable:
    """The part that cannot be pickled: the path to it, its value, and pickle's error."""

    steps: tuple[str, ...]
    value: Any
    reason: str

    @property
    def way(self) -> str:
        """The path as text. Empty if the value itself cannot be pickled."""
        return ", ".join(self.steps)


def find_unpicklable(value: Any, dump: Callable[[Any], object]) -> Unpicklable | None:
    """The part of a value that cannot be pickled. None if `dump` accepts the value."""
    failure = _failure(value, dump)
    if failure is None:
        return None
    steps: list[str] = []
    seen = {id(value)}
    while len(steps) < MOST_STEPS:
        for step, part in _parts(value):
            if id(part) in seen:
                continue
            reason = _failure(part, dump)
            if reason is not None:
                steps.append(step)
                seen.add(id(part))
                value, failure = part, reason
                break
        else:
            break
    return Unpicklable(tuple(steps), value, failure)


def _failure(value: Any, dump: Callable[[Any], object]) -> str | None:
    try:
        dump(value)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a value's own __reduce__ may raise anything
        return f"{type(error).__name__}: {error}"
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts that pickle would write for a value, each with a description of the step to it."""
    for kind, parts in _PARTS:
        if isinstance(value, kind):
            return parts(value)
    return _parts_of_object(value)


def _parts_of_method(method: types.MethodType) -> Iterator[tuple[str, Any]]:
    yield f"the object of its method '{method.__name__}'", method.__self__
    yield f"its method '{method.__name__}'", method.__func__


def _parts_of_partial(call: functools.partial[Any]) -> Iterator[tuple[str, Any]]:
    yield "the function of its partial()", call.func
    for number, argument in enumerate(call.args):
        yield f"argument {number} of its partial()", argument
    for name, argument in call.keywords.items():
        yield f"argument '{name}' of its partial()", argument


def _parts_of_dict(items: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, item in items.items():
        yield f"item [{short_repr(key, 40)}]", item
        yield f"key {short_repr(key, 40)}", key


def _parts_of_collection(items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for number, item in enumerate(items):
        yield f"item [{number}]", item


def _parts_of_class(cls: type) -> Iterator[tuple[str, Any]]:
    for base in cls.__bases__:
        yield f"base class '{base.__name__}'", base
    for name, attribute in list(vars(cls).items()):
        # cloudpickle leaves out the registry of an abstract class.
        if name == "_abc_impl":
            continue
        if not name.startswith("__") or isinstance(attribute, types.FunctionType):
            yield f"class attribute '{name}'", attribute


def _parts_of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        # A cell whose variable is not assigned yet raises instead.
        with contextlib.suppress(ValueError):
            yield f"captured variable '{name}'", cell.cell_contents
    for name in _global_names(function.__code__):
        if name in function.__globals__:
            yield f"global variable '{name}'", function.__globals__[name]
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield "the default of a parameter", default


def _global_names(code: types.CodeType) -> Iterator[str]:
    """Names that a function, or a function defined in it, may read from its module."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _parts_of_object(value: Any) -> Iterator[tuple[str, Any]]:
    """The state that the object gives to pickle. Nothing if it raises an error."""
    try:
        reduced = value.__reduce_ex__(5)
    except Exception:  # noqa: BLE001 - then the object is the culprit, and its error is the reason
        return
    if not isinstance(reduced, tuple):
        return
    arguments, state, items = (*reduced[1:4], None, None)[:3]
    for number, argument in enumerate(arguments or ()):
        if not isinstance(argument, type):
            yield f"constructor argument {number}", argument
    yield from _parts_of_state(state)
    for number, item in enumerate(items or ()):
        yield f"item [{number}]", item
    yield "its class", type(value)


def _parts_of_state(state: Any) -> Iterator[tuple[str, Any]]:
    # With __slots__, the state is a pair: the instance's dictionary, and its slots.
    for attributes in state if isinstance(state, tuple) else (state,):
        if isinstance(attributes, dict):
            for name, attribute in attributes.items():
                yield f"attribute '{name}'", attribute
        elif attributes is not None:
            yield "state", attributes


_PARTS: tuple[tuple[Any, Callable[[Any], Iterator[tuple[str, Any]]]], ...] = (
    (types.FunctionType, _parts_of_function),
    (types.MethodType, _parts_of_method),
    (functools.partial, _parts_of_partial),
    (dict, _parts_of_dict),
    ((list, tuple, set, frozenset), _parts_of_collection),
    (type, _parts_of_class),
)


def ship(value: Any) -> bytes:
    """Pickles a value. Lambdas and functions of `__main__` are sent too."""
    return dump_functions(value)


def unship(data: bytes) -> Any:
    """Unpickles the value. Needs cloudpickle, and the modules that the value refers to."""
    return pickle.loads(data)


def ship_vertices(job: JobProgram) -> tuple[bytes, ...]:
    """Pickles each vertex separately, because a task only needs its own vertex. Sources are planned now.

    Raises:
        UnpicklableFunctionError: A function cannot be pickled. The message names the operator and the part.
    """
    return tuple(_shipped(with_planned_sources(vertex)) for vertex in job.vertices)


def shipped_task(job: JobProgram, shipped: Sequence[bytes], task: int) -> JobProgram:
    """The job for one task: its own vertex, with its own copies of functions."""
    return task_program(job.job_name, job.job_parameters, shipped[job.vertex_number(task)])


def task_program(job_name: str, job_parameters: dict[str, str], vertex: bytes) -> JobProgram:
    """The program of a task, from its shipped vertex."""
    return JobProgram(job_name, (unship(vertex),), (), job_parameters)


def _shipped(vertex: VertexProgram) -> bytes:
    try:
        return ship(vertex)
    except MemoryError:
        raise
    except Exception as error:
        for what, function in _functions(vertex):
            culprit = find_unpicklable(function, ship)
            if culprit is not None:
                kind = type(culprit.value)
                cause = f"{culprit.way}, {_described(culprit.value)}, " if culprit.steps else ""
                raise UnpicklableFunctionError(
                    f"{what} cannot be sent to its tasks: {cause}"
                    f"cannot be pickled ({culprit.reason}); {_advice(kind)}"
                ) from error
        raise InternalError(f"vertex '{vertex.name}' cannot be pickled: {error}") from error


def _functions(vertex: VertexProgram) -> Iterator[tuple[str, Any]]:
    """The user's objects in a vertex, with their descriptions for errors."""
    for operator in vertex.all_operators:
        where = operator.label
        for name in operator.spec.__dataclass_fields__:
            value = getattr(operator.spec, name)
            yield f"{where}: its {name.replace('_', ' ')} {_name_of(value)}", value
        for key in operator.keys:
            if key is not None:
                yield f"{where}: its key selector {key.name}", key.selector
    for output in vertex.outputs:
        operator = vertex.operators[output.operator]
        where = f"{operator.label}, sending to {output.label}"
        if output.key is not None:
            yield f"{where}: the key selector {output.key.name}", output.key.selector
        yield f"{where}: the partitioner", output.custom_partitioner
        yield f"{where}: the reduce function", output.combine


def _name_of(function: Any) -> str:
    """The name of a function, or of the class of an object, without its address in memory."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return short_repr(name)


def _described(value: Any) -> str:
    kind = type(value)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{article} {name}"


def _advice(kind: type) -> str:
    if kind.__module__.partition(".")[0] == "pyspark":
        return (
            "executors have no SparkSession: read what is needed before, and capture plain values"
        )
    return (
        "make it where it is used, in open() or in the function, or capture plain values from which "
        "it can be made"
    )
