"""What makes up a window: assigner, trigger, evictor, lateness, and where late records go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from opchain.compiler.dsl.argument_checks import at_call, checked
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.callables import name_of
from opchain.runtime.operators.specs import WindowSpec
from opchain.runtime.output_tag import OutputTag
from opchain.runtime.time import millis_of
from opchain.runtime.type_variables import T, W
from opchain.runtime.windows.assigners import MergingWindowAssigner, WindowAssigner
from opchain.runtime.windows.evictors import Evictor
from opchain.runtime.windows.triggers import Trigger

if TYPE_CHECKING:
    from datetime import timedelta

    from typing_extensions import Self

    from opchain.compiler.dsl.environment import StreamExecutionEnvironment
    from opchain.runtime.time import Duration, Time


class WindowDefinition(Generic[T, W]):
    """The part of a windowed stream that says what its windows are; each setter returns it."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        window_assigner: WindowAssigner[T, W],
        call: str = "window",
    ) -> None:
        checked(window_assigner, WindowAssigner, call, "the window")
        self._environment = environment
        self._assigner = window_assigner
        self._trigger: Trigger[T, W] | None = None
        self._evictor: Evictor[T, W] | None = None
        self._allowed_lateness_ms = 0
        self._late_tag: OutputTag[T] | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment that the stream belongs to."""
        return self._environment

    def trigger(self, trigger: Trigger[T, W]) -> Self:
        """Decides when windows fire, in the place of the assigner's own trigger."""
        checked(trigger, Trigger, "trigger", "the trigger")
        if isinstance(self._assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise GraphError(
                f"{at_call('trigger')}: {type(trigger).__name__} cannot merge, and the windows of "
                f"{self._assigner} do; use a trigger whose can_merge() is true"
            )
        self._trigger = trigger
        return self

    def evictor(self, evictor: Evictor[T, W]) -> Self:
        """Removes records from a window before or after it is evaluated.

        Keeps all records of a window until then, also for `reduce` and `aggregate`.

        Flink: `WindowedStream.evictor`; PyFlink has none.
        """
        self._evictor = checked(evictor, Evictor, "evictor", "the evictor")
        return self

    def allowed_lateness(self, time_ms: int | Duration | Time | timedelta) -> Self:
        """Keeps each window this long after its end, and fires it again for records that come then.

        Event time only. Later records go to the late side output if there is one, else they are
        dropped and counted.
        """
        lateness = millis_of(time_ms)
        if lateness < 0:
            raise ValueError(
                f"{at_call('allowed_lateness')}: the lateness is {lateness} ms; "
                "it must not be negative"
            )
        self._allowed_lateness_ms = lateness
        return self

    def side_output_late_data(self, output_tag: OutputTag[T]) -> Self:
        """Sends records that come too late to a side output instead of dropping them."""
        self._late_tag = checked(output_tag, OutputTag, "side_output_late_data", "the tag")
        return self

    def take_over(self, other: WindowDefinition[Any, W]) -> None:
        """Takes over what was set on another definition, but for the assigner."""
        self._trigger = other._trigger
        self._evictor = other._evictor
        self._allowed_lateness_ms = other._allowed_lateness_ms
        self._late_tag = other._late_tag

    def spec(
        self,
        *,
        reduce: Any = None,
        aggregate: Any = None,
        function: Any = None,
        is_all: bool = False,
    ) -> WindowSpec:
        """The window operator that computes this over each window."""
        return WindowSpec(
            assigner=self._assigner,
            trigger=self._trigger_in_use(),
            evictor=self._evictor,
            allowed_lateness_ms=self._allowed_lateness_ms,
            late_tag=self._late_tag,
            reduce=reduce,
            aggregate=aggregate,
            function=function,
            is_all=is_all,
        )

    def operator_name(self) -> str:
        """The assigner's class, as Flink names window operators."""
        return type(self._assigner).__name__

    def description(self, kind: str, *functions: Any) -> str:
        """The operator as plans show it: `Window(TumblingEventTimeWindows(5000), ...)`."""
        parts = [str(self._assigner), type(self._trigger_in_use()).__name__]
        if self._evictor is not None:
            parts.append(type(self._evictor).__name__)
        parts += [name_of(function) for function in functions]
        return f"{kind}({', '.join(parts)})"

    def _trigger_in_use(self) -> Trigger[Any, W]:
        if self._trigger is not None:
            return self._trigger
        return self._assigner.get_default_trigger(self._environment)
