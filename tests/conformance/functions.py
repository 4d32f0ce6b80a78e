"""The functions of the vectors' operators. They do nothing, because only the graphs are compared.

The names of classes count where Flink shows them: a window's description names its function.
"""

from __future__ import annotations

from typing import Any

from opchain.datastream import (
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    CoProcessFunction,
    JoinFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ParallelSourceFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ReduceFunction,
    SourceFunction,
)
from opchain.runtime.functions.record_functions import MapPartitionFunction


class Numbers(SourceFunction[int]):
    def run(self, ctx: Any) -> None:
        ctx.collect(1)

    def cancel(self) -> None:
        pass


class ParallelNumbers(ParallelSourceFunction[int]):
    def run(self, ctx: Any) -> None:
        ctx.collect(1)

    def cancel(self) -> None:
        pass


class PassOn(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: Any) -> Any:
        yield value


class KeyedPassOn(KeyedProcessFunction[int, int, int]):
    def process_element(self, value: int, ctx: Any) -> Any:
        yield value


class Lookup(AsyncFunction[int, int]):
    async def async_invoke(self, value: int) -> list[int]:
        return [value]


class Whole(MapPartitionFunction[int, int]):
    def map_partition(self, values: Any) -> Any:
        yield from values


class Reducer(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


class BothMapped(CoMapFunction[int, int, int]):
    def map1(self, value: int) -> int:
        return value

    def map2(self, value: int) -> int:
        return value


class BothFlatMapped(CoFlatMapFunction[int, int, int]):
    def flat_map1(self, value: int) -> list[int]:
        return [value]

    def flat_map2(self, value: int) -> list[int]:
        return [value]


class BothProcessed(CoProcessFunction[int, int, int]):
    def process_element1(self, value: int, ctx: Any) -> Any:
        yield value

    def process_element2(self, value: int, ctx: Any) -> Any:
        yield value


class BothProcessedByKey(KeyedCoProcessFunction[int, int, int, int]):
    def process_element1(self, value: int, ctx: Any) -> Any:
        yield value

    def process_element2(self, value: int, ctx: Any) -> Any:
        yield value


class WithBroadcast(BroadcastProcessFunction[int, int, int]):
    def process_element(self, value: int, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: int, ctx: Any) -> Any:
        yield value


class WithBroadcastByKey(KeyedBroadcastProcessFunction[int, int, int, int]):
    def process_element(self, value: int, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: int, ctx: Any) -> Any:
        yield value


class Pairs(ProcessJoinFunction[int, int, int]):
    def process_element(self, left: int, right: int, ctx: Any) -> Any:
        yield left + right


class Joined(JoinFunction[int, int, int]):
    def join(self, first: int, second: int) -> int:
        return first + second


class Grouped(CoGroupFunction[int, int, int]):
    def co_group(self, first: Any, second: Any) -> Any:
        yield len(list(first)) + len(list(second))


def identity(value: int) -> int:
    return value


def is_wanted(value: int) -> bool:
    return value > 0


def once(value: int) -> list[int]:
    return [value]
