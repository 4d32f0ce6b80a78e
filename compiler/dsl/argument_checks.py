"""Checks the arguments of DSL calls. Messages name the call, its line, and what is accepted.

Calls that are not supported are refused by name.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from opchain.compiler.graph.transformation import (
    CacheTransformation,
    OperatorTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    Transformation,
    UnionTransformation,
    user_call_site,
)
from opchain.runtime.columnar.type_mapping import spark_type_of
from opchain.runtime.errors import GraphError, UnsupportedFeatureError, short_repr
from opchain.runtime.functions.callables import (
    as_function,
    generator_problem,
    name_of,
    parameters_problem,
)
from opchain.runtime.functions.function import Function
from opchain.runtime.functions.sink import Sink
from opchain.runtime.functions.source import Source
from opchain.runtime.functions.source_sink_functions import SinkFunction, SourceFunction
from opchain.runtime.program.operator_specs import MapBatchesSpec
from opchain.runtime.types.record_types import RowTypeInfo, TupleTypeInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.dsl.stream import Stream
    from opchain.runtime.types.type_information import TypeInformation


def at_call(call: str) -> str:
    """The call as messages name it, with the user's line: `map() (clicks.py:14)`."""
    return f"{call}() ({user_call_site()})"


_CALLS_THAT_TAKE = {
    "add_sink": SinkFunction,
    "add_source": SourceFunction,
    "from_source": Source,
    "sink_to": Sink,
}


def checked_function(
    function: Any, accepted: type | tuple[type, ...], call: str, *, callables: bool = False
) -> Any:
    """Returns the function if it is an object of an accepted class or, with `callables`, a plain callable.

    A callable must take the arguments of the method of the (first) accepted class.

    Raises:
        TypeError: The argument is something else, such as a class instead of an object of it; or its method is a
            generator function, but must return one result, or has other parameters.
    """
    kinds = accepted if isinstance(accepted, tuple) else (accepted,)
    if isinstance(function, kinds):
        problem = generator_problem(function) or parameters_problem(function, *kinds)
        if problem is not None:
            raise TypeError(f"{at_call(call)}: {problem}")
        return function
    if callables:
        as_function(kinds[0], function, at_call(call))
        return function
    expected = " or ".join(_with_article(kind.__name__) for kind in kinds)
    message = f"{at_call(call)} got {_described(function)}; it takes {expected}"
    if isinstance(function, type) and issubclass(function, kinds):
        message += f": pass an object, {function.__name__}(...)"
    elif callable(function) and not isinstance(function, (type, Function)):
        message += ": write a subclass, a function is not enough"
    elif hasattr(function, "build"):
        message += ": call build() first"
    else:
        message += "".join(
            f"; pass it to {other}()"
            for other, kind in _CALLS_THAT_TAKE.items()
            if isinstance(function, kind)
        )
    raise TypeError(message)


def checked(value: Any, accepted: type | tuple[type, ...], call: str, what: str) -> Any:
    """Returns the value if it is of an accepted class. Raises TypeError otherwise."""
    kinds = accepted if isinstance(accepted, tuple) else (accepted,)
    # True is an int to isinstance, and a parallelism of True is a mistake.
    if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
        return value
    expected = " or ".join(_with_article(kind.__name__) for kind in kinds)
    raise TypeError(f"{at_call(call)}: {what} is {_described(value)}; it must be {expected}")


def check_field(kind: str, field: int | str, declared: object) -> None:
    """Checks that records of the declared type have this field.

    Without the check the job would fail at its first record.

    Raises:
        ValueError: The type has no such field.
    """
    if not isinstance(declared, TupleTypeInfo | RowTypeInfo):
        return
    count = len(declared.get_field_types())
    names = declared.get_field_names() if isinstance(declared, RowTypeInfo) else []
    is_there = field in names if isinstance(field, str) else -count <= field < count
    if not is_there and (names or isinstance(field, int)):
        raise ValueError(
            f"{at_call(kind)}: records of the type {declared!r} have no field {field!r}; their fields are "
            f"0 to {count - 1}" + (f", or {', '.join(names)}" if names else "")
        )


def checked_stream(stream: Any, kind: type[Any], of: Stream[Any], call: str) -> Any:
    """Returns the other stream of an operation, checked for its class and its environment.

    Raises:
        TypeError: It is not a stream of that kind.
        GraphError: It belongs to another environment.
    """
    if not isinstance(stream, kind):
        raise TypeError(
            f"{at_call(call)} got {_described(stream)}; it takes {_with_article(kind.__name__)}"
        )
    found: Stream[Any] = stream
    if found.get_execution_environment() is not of.get_execution_environment():
        mine, other = of.transformation, found.transformation
        raise GraphError(
            f"{at_call(call)}: {other.label} belongs to another "
            f"StreamExecutionEnvironment than {mine.label}; make both streams from one environment"
        )
    return stream


def _described(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, FunctionType):
        return f"the function {name_of(value)}"
    return f"{short_repr(value)} of type {type(value).__name__}"


def _with_article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOaeiou' else 'a'} {name}"


DeclaredType: TypeAlias = Union["TypeInformation[Any]", "list[TypeInformation[Any]]", None]
"""A TypeInformation; a list of field types, for rows; or None."""


def type_of(declared: Any, call: str) -> TypeInformation[Any] | None:
    """Returns the declared type. A list of types becomes a row type.

    Raises:
        TypeError: The argument is neither a type, nor a list of types, nor None.
    """
    if declared is None:
        return None
    # Imported late: a program without declared types never loads them.
    from opchain.runtime.types.type_information import TypeInformation  # noqa: PLC0415

    if isinstance(declared, TypeInformation):
        return declared
    if isinstance(declared, list) and all(isinstance(item, TypeInformation) for item in declared):
        from opchain.runtime.types.types import Types  # noqa: PLC0415

        return Types.ROW(declared)
    raise TypeError(
        f"{at_call(call)} got the type {declared!r}; it takes a TypeInformation such as "
        "Types.STRING(), or a list of them for rows, or nothing"
    )


def declared_type(transformation: Transformation) -> TypeInformation[Any] | None:
    """The type that was declared for the records of a transformation."""
    while isinstance(transformation, (PartitionTransformation, UnionTransformation)):
        transformation = transformation.inputs[0]
    if isinstance(transformation, SideOutputTransformation):
        tagged: TypeInformation[Any] | None = transformation.tag.type_info
        return tagged
    if isinstance(transformation, (OperatorTransformation, CacheTransformation)):
        declared: TypeInformation[Any] | None = transformation.output_type
        return declared
    return None


FORMATS = ("list", "arrow")


def batches_spec(
    stream: Stream[Any],
    func: Any,
    output_type: DeclaredType,
    batch_format: str,
    *,
    one_to_one: bool,
) -> MapBatchesSpec:
    """The spec of a `map_batches` operator.

    Raises:
        ValueError: The batch format is unknown.
        GraphError: The format needs columns, but the records have no declared type.
    """
    call = "map_batches"
    if batch_format not in FORMATS:
        raise ValueError(
            f"{at_call(call)} got batch_format={batch_format!r}; the formats are "
            f"{' and '.join(map(repr, FORMATS))} (a RecordBatch has to_pandas())"
        )
    if batch_format == "list":
        return MapBatchesSpec(func, batch_format, one_to_one)
    source = stream.transformation
    record_type = declared_type(source)
    if record_type is None:
        raise GraphError(
            f"{at_call(call)}: {source.label} has no declared record type, "
            f"which Arrow batches need: declare it, as in map(f, "
            f"output_type=Types.ROW_NAMED(...)), or use lists"
        )
    try:
        columns = spark_type_of(record_type)
    except GraphError as error:
        raise GraphError(f"{at_call(call)}: {error}") from error
    given = type_of(output_type, call)
    gives_values = given is not None and not isinstance(given, (RowTypeInfo, TupleTypeInfo))
    return MapBatchesSpec(func, batch_format, one_to_one, columns, gives_values)


def refused(what: str, instead: str) -> UnsupportedFeatureError:
    """The error for an unsupported part of the Table API. `instead` names the alternative."""
    return UnsupportedFeatureError(
        f"{at_call(what)}: this part of the Table API is not supported; {instead}"
    )


def removed(what: str, instead: str) -> UnsupportedFeatureError:
    """The error for a method of PyFlink 1 that PyFlink 2 does not have. `instead` names the replacement."""
    return UnsupportedFeatureError(
        f"{at_call(what)} is of PyFlink 1, and not of PyFlink 2: {instead}"
    )


def refuses(
    what: str, instead: str, error: Callable[[str, str], UnsupportedFeatureError] = refused
) -> Callable[..., Any]:
    """A method that raises an error, `refused` or `removed`, for a method that PyFlink has or had."""

    def refuse(*_arguments: Any, **_keywords: Any) -> Any:
        raise error(what, instead)

    return refuse
