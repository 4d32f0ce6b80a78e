"""Dates and times: how long until a deadline, by weekday."""

# mode: STREAMING
# parallelism: 1
from datetime import date, datetime, time, timedelta

from pyflink.common import Row, Types

TASK = Types.ROW_NAMED(
    ["name", "due", "at", "created"],
    [Types.STRING(), Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP()],
)
TASKS = [
    Row("report", date(2024, 2, 29), time(9, 30), datetime(2024, 2, 27, 23, 59, 59, 123000)),
    Row("review", date(2024, 3, 1), time(0, 0), datetime(2024, 2, 28)),
    Row("release", date(2024, 12, 31), time(23, 59, 59), datetime(2024, 2, 28, 12)),
]


def remaining(task):
    return task.name, datetime.combine(task.due, task.at) - task.created


def build(env, out):
    tasks = env.from_collection(TASKS, TASK)
    out(tasks, "tasks")
    out(tasks.map(remaining).map(lambda r: (r[0], r[1].total_seconds())), "remaining")
    out(
        tasks.map(lambda t: t.due + timedelta(days=1), Types.SQL_DATE())
        .key_by(lambda day: day.strftime("%A"))
        .reduce(lambda a, b: max(a, b)),
        "weekdays",
    )
    out(
        tasks.map(
            lambda t: (t.created.replace(microsecond=1500), t.at),
            Types.TUPLE([Types.SQL_TIMESTAMP(), Types.SQL_TIME()]),
        ),
        "cut",
    )
