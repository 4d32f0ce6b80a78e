"""Functions as bytes for other processes, and the error for one that cannot travel.

A function or class is written by name where its module can be imported, and by value where it cannot:
lambdas, nested functions, everything of the main program. Which modules executors can import is the
business of runtime/spark/worker_path.py.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import InternalError, UnpicklableFunctionError, short_repr
from opchain.runtime.shipping.unpicklable import find_unpicklable
from opchain.runtime.task.planned_sources import with_planned_sources
from opchain.runtime.task.vertex_program import JobProgram

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.task.vertex_program import VertexProgram


def ship(value: Any) -> bytes:
    """Pickles a value by cloudpickle, so that lambdas and functions of `__main__` travel too."""
    import cloudpickle  # noqa: PLC0415 - only what ships needs the package

    return bytes(cloudpickle.dumps(value, protocol=5))


def unship(data: bytes) -> Any:
    """The value again; needs cloudpickle, and the modules that the value names."""
    return pickle.loads(data)


def ship_vertices(job: JobProgram) -> tuple[bytes, ...]:
    """Each vertex as bytes: a task needs its own alone. Sources are planned now.

    Raises:
        UnpicklableFunctionError: A function cannot be pickled; names the operator and the culprit.
    """
    return tuple(_shipped(with_planned_sources(vertex)) for vertex in job.vertices)


def shipped_task(job: JobProgram, shipped: Sequence[bytes], task: int) -> JobProgram:
    """The job as one task needs it: its own vertex, with functions that no other task has touched."""
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
                    f"{what} cannot travel to the tasks that run it: {cause}"
                    f"cannot be pickled ({culprit.reason}); {_advice(kind)}"
                ) from error
        raise InternalError(f"vertex '{vertex.name}' cannot be pickled: {error}") from error


def _functions(vertex: VertexProgram) -> Iterator[tuple[str, Any]]:
    """What of a vertex comes from the user, with the words that name it in an error."""
    for operator in vertex.all_operators:
        where = f"'{operator.name}' ({operator.call_site})"
        for name in operator.spec.__dataclass_fields__:
            value = getattr(operator.spec, name)
            yield f"{where}: its {name.replace('_', ' ')} {_name_of(value)}", value
        for key in operator.keys:
            if key is not None:
                yield f"{where}: its key selector {key.name}", key.selector
    for output in vertex.outputs:
        operator = vertex.operators[output.operator]
        where = f"'{operator.name}' ({operator.call_site}), sending {output.label}"
        if output.key is not None:
            yield f"{where}: the key selector {output.key.name}", output.key.selector
        yield f"{where}: the partitioner", output.custom_partitioner
        yield f"{where}: the reduce function", output.combine


def _name_of(function: Any) -> str:
    """A function's own name, an object's class: neither its address in memory."""
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
