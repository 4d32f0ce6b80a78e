"""Two connected streams through one function: CoMap, CoFlatMap."""

from __future__ import annotations

from typing import Any

from opchain.runtime.operators.operator import UserFunctionOperator


class _CoOperator(UserFunctionOperator):
    """On keyed streams both inputs set the key, so that the function's keyed state is that key's."""

    def set_key(self, number: int, value: Any) -> None:
        """Makes the record's key the current one, where its input has one."""
        key = self.program.keys[number]
        if key is not None and self.context.keyed_state is not None:
            self.context.keyed_state.set_current_key(key.selector(value))

    @property
    def current_key(self) -> Any:
        """The key of the record at hand."""
        backend = self.context.keyed_state
        return None if backend is None else backend.current_key


class CoMapOperator(_CoOperator):
    """Flink: `CoStreamMap`; as in PyFlink, None emits nothing."""

    method = "map1"

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits the result for a record of the first stream."""
        self.set_key(0, value)
        result = self.function.map1(value)
        if result is not None:
            self.output.collect(result, timestamp)

    def process_element2(self, value: Any, timestamp: int | None) -> None:
        """Emits the result for a record of the second stream."""
        self.set_key(1, value)
        result = self.function.map2(value)
        if result is not None:
            self.output.collect(result, timestamp)


class CoFlatMapOperator(_CoOperator):
    """Flink: `CoStreamFlatMap`; as in PyFlink, None emits nothing."""

    method = "flat_map1"

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits the results for a record of the first stream."""
        self.set_key(0, value)
        results = self.function.flat_map1(value)
        for result in () if results is None else results:
            self.output.collect(result, timestamp)

    def process_element2(self, value: Any, timestamp: int | None) -> None:
        """Emits the results for a record of the second stream."""
        self.set_key(1, value)
        results = self.function.flat_map2(value)
        for result in () if results is None else results:
            self.output.collect(result, timestamp)
