"""Counts readings per ten seconds, and shows what happens to late readings.

Look at the watermark, which is 5 s behind the readings. A reading that is late by less than 5 s is counted in time.
Within the allowed lateness, its window fires again with the new count. After that, the window's state is gone, and the
reading goes to a side output. (In batch mode nothing is late, because windows fire after all input is read.)

    $ python examples/late_data.py
    ('0 s to 10 s', 3)
    ('0 s to 10 s', 4)
    ('10 s to 20 s', 2)
    late> 9
    ('20 s to 30 s', 1)
    ('30 s to 40 s', 1)
    $ opchain run --local examples/late_data.py --lateness 0
"""

import argparse
from collections.abc import Iterable

from opchain import StreamExecutionEnvironment
from opchain.common import Time, Types, WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from opchain.datastream import OutputTag, ProcessAllWindowFunction
from opchain.datastream.window import TimeWindow, TumblingEventTimeWindows

Context = ProcessAllWindowFunction.Context[TimeWindow]

READINGS = [1, 8, 12, 4, 17, 5, 27, 9, 33]  # seconds, in the order of their arrival
LATE = OutputTag("late", Types.INT())


class TrailingWatermarks(WatermarkGenerator[int]):
    """Emits a watermark at each reading, not every 200 ms, so the speed of the machine changes no result."""

    def on_event(self, event: int, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(event_timestamp - 5_001)

    def on_periodic_emit(self, output: WatermarkOutput) -> None: ...


class Count(ProcessAllWindowFunction[int, tuple[str, int], TimeWindow]):
    def process(self, context: Context, elements: Iterable[int]) -> list[tuple[str, int]]:
        start, end = context.window().start // 1_000, context.window().end // 1_000
        return [(f"{start} s to {end} s", len(list(elements)))]


def build(env: StreamExecutionEnvironment, lateness: int = 10) -> None:
    trailing = WatermarkStrategy.for_generator(lambda _: TrailingWatermarks())
    readings = env.from_collection(READINGS).assign_timestamps_and_watermarks(
        trailing.with_timestamp_assigner(lambda second, _: second * 1_000)
    )
    windows = readings.window_all(TumblingEventTimeWindows.of(Time.seconds(10)))
    kept = windows.allowed_lateness(lateness * 1_000).side_output_late_data(LATE)
    counts = kept.process(Count()).name("count")
    counts.print()
    counts.get_side_output(LATE).print("late")


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts readings per ten seconds.")
    parser.add_argument("--lateness", type=int, default=10, help="allowed lateness in seconds")
    env = StreamExecutionEnvironment.get_execution_environment()
    build(env, parser.parse_args().lateness)
    env.execute("late data")


if __name__ == "__main__":
    main()
