"""Stream, the base of all streams: its transformation, and the attributes of the operator (name, uid, parallelism, chaining)."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic

from opchain.compiler.dsl.argument_checks import at_call, checked, declared_type, type_of
from opchain.compiler.dsl.captured_functions import NotCapturable, captured
from opchain.compiler.graph.transformation import (
    CacheTransformation,
    ChainingStrategy,
    OperatorTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    SinkTransformation,
    user_call_site,
)
from opchain.runtime.errors import GraphError, StreamError, UnsupportedFeatureError
from opchain.runtime.program.operator_specs import GUARDED_KINDS, GuardedSpec
from opchain.runtime.types.output_tag import OutputTag
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Self

    from opchain.compiler.dsl.argument_checks import DeclaredType
    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.dsl.environment import StreamExecutionEnvironment
    from opchain.compiler.graph.partitioner import KeyBy
    from opchain.compiler.graph.transformation import Transformation
    from opchain.compiler.settings.execution_config import ExecutionConfig
    from opchain.compiler.settings.slot_sharing_group import SlotSharingGroup
    from opchain.runtime.program.operator_specs import OperatorSpec
    from opchain.runtime.types.type_information import TypeInformation


class Stream(NotCapturable, Generic[T]):
    """A stream of records of type T.

    Methods of the DSL create it. The compiler reads its `transformation`. The setters concern the operator that emits
    the stream, and each returns the stream. A key-by, a union, a partitioning or a side output is not an operator:
    setting an attribute of one raises GraphError.

    Flink: `SingleOutputStreamOperator` has the setters. PyFlink has them on every DataStream.
    """

    def __init__(
        self, environment: StreamExecutionEnvironment, transformation: Transformation
    ) -> None:
        self._environment = environment
        self.transformation = transformation

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.transformation.label}>"

    def _repr_html_(self) -> str:
        """For notebooks: the call site, the type, and a picture of the program up to here."""
        from opchain.compiler.plan.page.render import (  # noqa: PLC0415 - notebooks only
            program_cell,
            program_page,
        )

        text = html.escape(f"{self!r}, {self.get_type()!r}")
        program = self._environment.program()
        program = replace(program, transformations=(self.transformation,))
        try:
            return f"<div>{text}</div>{program_cell(program, lambda: program_page(program))}"
        except StreamError as error:
            return f"<div>{text}</div><div>{html.escape(str(error))}</div>"

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment that the stream belongs to."""
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        """The environment's execution config, not a copy."""
        return self._environment.get_config()

    def get_id(self) -> int:
        """The id of the transformation. Each environment counts ids from 1."""
        return self.transformation.id

    def get_parallelism(self) -> int:
        """The number of subtasks that emit the stream."""
        return self.transformation.parallelism

    def get_type(self) -> TypeInformation[Any]:
        """The declared type of the records. Without a declaration it is the type of pickled bytes.

        Declaring types is optional: records may be any Python objects. Unnamed fields of a row type are called f0, f1,
        ..., as in PyFlink.
        """
        from opchain.runtime.types.record_types import with_field_names  # noqa: PLC0415 - plans need no types
        from opchain.runtime.types.types import Types  # noqa: PLC0415

        return with_field_names(declared_type(self.transformation) or Types.PICKLED_BYTE_ARRAY())

    @property
    def state_key(self) -> KeyBy | None:
        """The key that scopes the state of an operator on this stream. None for a stream without key."""
        return None

    def transform(
        self,
        spec: OperatorSpec,
        output_type: DeclaredType = None,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        parallelism_configured: bool = False,
        is_keyed: bool = True,
    ) -> DataStream[Any]:
        """Adds an operator with one input. The other methods call this one.

        On a keyed stream, the operator has the key of the stream, unless `is_keyed` is False.

        Flink: `DataStream.transform` and `KeyedStream.doTransform`.
        """
        environment = self._environment
        transformation = OperatorTransformation(
            environment.next_transformation_id(),
            spec.default_name if name is None else name,
            (self.transformation,),
            spec=captured(spec),
            parallelism=environment.get_parallelism() if parallelism is None else parallelism,
            parallelism_configured=parallelism_configured,
            key_bys=(self.state_key if is_keyed else None,),
            call_site=user_call_site(),
            output_type=type_of(output_type, spec.kind),
        )
        environment.add_operator(transformation)
        return self._stream_of(transformation)

    def _stream_of(self, transformation: Transformation) -> DataStream[Any]:
        from opchain.compiler.dsl.data_stream import DataStream  # noqa: PLC0415 - it is a Stream

        return DataStream(self._environment, transformation)

    def get_name(self) -> str:
        """The operator's name, as in the plan and the logs, without `Source: ` or `Sink: `."""
        return self._operator("get_name").name

    def name(self, name: str) -> Self:
        """Names the operator, in the plan, the logs and the metrics."""
        self._operator("name").name = checked(name, str, "name", "the name")
        return self

    def uid(self, uid: str) -> Self:
        """Sets the uid of the operator. A restore finds the operator's state by it.

        It must be unique in the program.
        """
        set_uid(self._operator("uid"), uid)
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Sets the operator id that the operator has in an existing savepoint: 32 hex digits."""
        self._operator("set_uid_hash").set_uid_hash(uid_hash)
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Sets the number of subtasks; -1 uses the parallelism of the environment."""
        self._operator("set_parallelism").set_parallelism(parallelism)
        return self

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Sets the number of key groups, 1 to 32768. It is the maximum parallelism for rescaling."""
        self._operator("set_max_parallelism").set_max_parallelism(max_parallelism)
        return self

    def force_non_parallel(self) -> Self:
        """Sets parallelism and maximum parallelism to 1. They cannot be changed afterwards."""
        self._operator("force_non_parallel").force_non_parallel()
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Sets how long a record may wait in a buffer, in milliseconds.

        0 flushes after each record; -1 uses the job's setting.
        """
        timeout = checked(timeout_millis, int, "set_buffer_timeout", "the timeout")
        if timeout < -1:
            raise ValueError(
                f"{at_call('set_buffer_timeout')}: the timeout is {timeout} ms; "
                "it must be -1 or more"
            )
        self._operator("set_buffer_timeout").buffer_timeout = timeout
        return self

    def start_new_chain(self) -> Self:
        """Starts a new chain with this operator: it is never chained to its input."""
        self._operator("start_new_chain").chaining_strategy = ChainingStrategy.HEAD
        return self

    def disable_chaining(self) -> Self:
        """Never chains this operator, neither to its input nor to its consumers."""
        self._operator("disable_chaining").chaining_strategy = ChainingStrategy.NEVER
        return self

    def set_chaining_strategy(self, strategy: ChainingStrategy) -> Self:
        """Sets any chaining strategy, including HEAD_WITH_SOURCES. Flink has no public method for this."""
        checked(strategy, ChainingStrategy, "set_chaining_strategy", "the strategy")
        self._operator("set_chaining_strategy").chaining_strategy = strategy
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Puts the operator into a slot sharing group. Operators of different groups are never chained.

        An operator without a group gets the group of its inputs if they all have the same one. On Spark, the tasks of
        one slot run one after another. Tasks of different groups run in parallel if there are enough cores.

        Args:
            slot_sharing_group: A name, or a group with resources. A group with resources is registered.
        """
        self._operator(
            "slot_sharing_group"
        ).slot_sharing_group = self._environment.slot_sharing_group_name(slot_sharing_group)
        return self

    def set_description(self, description: str) -> Self:
        """Sets a description for plans. It may be longer than the name."""
        self._operator("set_description").description = checked(
            description, str, "set_description", "the description"
        )
        return self

    def on_error(self, policy: Literal["fail", "skip"] | OutputTag[Any]) -> Self:
        """Sets the policy for records whose function raises an exception. By default the job fails. Not in Flink.

        Results that the function returned for the record before the exception are dropped. Changes of state are kept.
        Exceptions in timers, key selectors and downstream operators still fail the job.

        Args:
            policy: "fail"; "skip" continues with the next record; an OutputTag sends a FailedRecord, with the record
                and its error, to this side output and continues. The last two count such records in the operator's
                metric `numRecordsInErrors`. They cost about a microsecond per record.

        Raises:
            UnsupportedFeatureError: The function of the operator is not called with single records, as in a window.
        """
        transformation = self._operator("on_error")
        if policy not in ("fail", "skip") and not isinstance(policy, OutputTag):
            raise ValueError(
                f"{at_call('on_error')} got {policy!r}; it takes 'fail', 'skip' or an OutputTag"
            )
        spec = getattr(transformation, "spec", None)
        if isinstance(spec, GuardedSpec):
            spec = spec.guarded
        if not isinstance(transformation, OperatorTransformation) or not isinstance(
            spec, GUARDED_KINDS
        ):
            raise UnsupportedFeatureError(
                f"{at_call('on_error')}: {transformation.label} calls no function with "
                "single records; catch the exception in the function, or call on_error() on a map() before it"
            )
        transformation.spec = spec if policy == "fail" else GuardedSpec(spec, policy)
        return self

    def _operator(self, call: str) -> Transformation:
        transformation = self.transformation
        if isinstance(transformation, (OperatorTransformation, SinkTransformation)):
            return transformation
        raise GraphError(
            f"{at_call(call)}: {_what(transformation)} ({transformation.call_site}) is not an "
            f"operator and has no attributes; call {call}() on the operator before or after it"
        )


def set_uid(transformation: Transformation, uid: str) -> None:
    """Sets a uid, which must be a non-empty string."""
    if not checked(uid, str, "uid", "the uid"):
        raise ValueError(
            f"{at_call('uid')}: the uid of {transformation.label} is empty; give a name that is unique in the program"
        )
    transformation.uid = uid


def _what(transformation: Transformation) -> str:
    if isinstance(transformation, PartitionTransformation):
        return f"a {transformation.partitioner.kind.value.lower()} partitioning"
    if isinstance(transformation, SideOutputTransformation):
        return f"the side output '{transformation.tag.tag_id}'"
    if isinstance(transformation, CacheTransformation):
        return f"the cache of '{transformation.stream.name}'"
    return "a union"
