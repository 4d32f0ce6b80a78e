"""Measures compile time for 1,000, 10,000 and 100,000 operators, which should grow linearly.

    python benchmarks/compile.py [--sizes 1000,10000]

Four shapes: one chain; one source with many consumers; one union of many sources; a random graph in
which a third of the edges are not chained. Drawing (the DSL calls) and compiling (everything up to the JobGraph)
are timed separately. The last column is the time per operator, relative to the smallest size.
"""

from __future__ import annotations

import argparse
import gc
import time
from random import Random
from typing import TYPE_CHECKING, Any

from opchain.common import WatermarkStrategy
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import CoMapFunction, StreamExecutionEnvironment
from opchain.runtime.connectors.collection import NumberSequenceSource
from opchain.runtime.connectors.simple_sinks import DiscardingSink

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.datastream import DataStream

    Draw = Callable[[StreamExecutionEnvironment, int], None]

_NEAR = 20
_CUT = 0.15
_TWO_INPUTS = 0.2


class _Both(CoMapFunction[int, int, int]):
    def map1(self, value: int) -> int:
        return value

    def map2(self, value: int) -> int:
        return value


def _same(value: int) -> int:
    return value


def _source(env: StreamExecutionEnvironment) -> DataStream[int]:
    source = NumberSequenceSource(1, 1000)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")


def chain(env: StreamExecutionEnvironment, operators: int) -> None:
    """A chain: all operators in one vertex."""
    stream = _source(env)
    for _ in range(operators - 2):
        stream = stream.map(_same)
    stream.sink_to(DiscardingSink())


def fan_out(env: StreamExecutionEnvironment, operators: int) -> None:
    """A source with many consumers. Half of them are chained to the source, each other one has its own vertex."""
    source = _source(env)
    for number in range(operators - 1):
        (source.rebalance() if number % 2 else source).map(_same)


def fan_in(env: StreamExecutionEnvironment, operators: int) -> None:
    """A union of many sources: one vertex with an input from every other vertex."""
    first, *others = (_source(env) for _ in range(operators - 2))
    first.union(*others).map(_same).sink_to(DiscardingSink())


def random_graph(env: StreamExecutionEnvironment, operators: int) -> None:
    """Operators with one or two random earlier operators as inputs. The graph is the same in every run."""
    random = Random(1)
    streams = [_source(env)]
    while len(streams) < operators:
        dice = random.random()
        near = streams[-random.randint(1, min(_NEAR, len(streams)))]
        if dice < _TWO_INPUTS:
            far = random.choice(streams).rebalance()
            streams.append(near.connect(far).map(_Both()))
        elif dice < _TWO_INPUTS + _CUT:
            streams.append(near.rebalance().map(_same))
        else:
            streams.append(near.map(_same))


SHAPES: dict[str, Draw] = {
    "chain": chain,
    "fan-out": fan_out,
    "fan-in": fan_in,
    "random": random_graph,
}


def measure(draw: Draw, operators: int) -> tuple[float, float, int]:
    """Returns seconds to draw, seconds to compile, and the number of vertices."""
    env = StreamExecutionEnvironment.get_execution_environment()
    gc.collect()
    start = time.perf_counter()
    draw(env, operators)
    drawn = time.perf_counter()
    program = env.program()
    plan: Any = compile_program(program, until="job-graph")
    return drawn - start, time.perf_counter() - drawn, len(plan.job_graph.vertices)


def main() -> None:
    """Prints a line for each shape and size."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--sizes", default="1000,10000,100000")
    sizes = [int(size) for size in parser.parse_args().sizes.split(",")]
    measure(chain, sizes[0])  # imports and caches
    print(
        f"{'shape':8} {'operators':>9} {'vertices':>8} {'draw s':>7} {'compile s':>9} {'ratio':>6}"
    )
    for name, draw in SHAPES.items():
        smallest = 0.0
        for size in sizes:
            drawing, compiling, vertices = measure(draw, size)
            per_operator = compiling / size
            smallest = smallest or per_operator
            ratio = per_operator / smallest
            print(f"{name:8} {size:9,} {vertices:8,} {drawing:7.2f} {compiling:9.2f} {ratio:6.2f}")


if __name__ == "__main__":
    main()
