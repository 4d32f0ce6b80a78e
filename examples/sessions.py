"""Groups page views into visits. A visit ends after half an hour without a view by its user.

Look at the views, which are out of order: ann's view of minute 40 merges two visits that were separate before.
Views may be up to 30 minutes late. The end of the input closes all open visits.

    $ python examples/sessions.py
    ('bob', 'minutes 5 to 5', '1 pages')
    ('ann', 'minutes 0 to 65', '4 pages')
    ('bob', 'minutes 90 to 100', '2 pages')
    ('ann', 'minutes 200 to 200', '1 pages')
    $ opchain run --local examples/sessions.py --gap 15
"""

import argparse
from collections.abc import Iterable, Iterator

from opchain import StreamExecutionEnvironment
from opchain.common import Duration, Time, WatermarkStrategy
from opchain.datastream import ProcessWindowFunction
from opchain.datastream.window import EventTimeSessionWindows, TimeWindow

View = tuple[str, str, int]  # user, page, minute
Visit = tuple[str, str, str]
Context = ProcessWindowFunction.Context[TimeWindow]

VIEWS = [
    ("ann", "/", 0),
    ("bob", "/", 5),
    ("ann", "/shoes", 20),
    ("ann", "/pay", 65),
    ("ann", "/cart", 40),
    ("bob", "/hats", 90),
    ("bob", "/pay", 100),
    ("ann", "/", 200),
]


class Summary(ProcessWindowFunction[View, Visit, str, TimeWindow]):
    def process(self, key: str, context: Context, elements: Iterable[View]) -> Iterator[Visit]:
        minutes = [minute for _, _, minute in elements]
        yield key, f"minutes {min(minutes)} to {max(minutes)}", f"{len(minutes)} pages"


def build(env: StreamExecutionEnvironment, gap: int = 30) -> None:
    half_an_hour = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(30))
    views = env.from_collection(VIEWS).assign_timestamps_and_watermarks(
        half_an_hour.with_timestamp_assigner(lambda view, _: view[2] * 60_000)
    )
    windows = EventTimeSessionWindows.with_gap(Time.minutes(gap))
    views.key_by(lambda view: view[0]).window(windows).process(Summary()).name("visits").print()


def main() -> None:
    parser = argparse.ArgumentParser(description="Groups page views into visits.")
    parser.add_argument("--gap", type=int, default=30, help="minutes that end a visit")
    arguments = parser.parse_args()
    env = StreamExecutionEnvironment.get_execution_environment()
    build(env, arguments.gap)
    env.execute("sessions")


if __name__ == "__main__":
    main()
