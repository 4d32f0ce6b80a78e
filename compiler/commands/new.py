"""`opchain new`: creates a small project."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.command_line.output import answer, examples

_PROGRAM = '''"""Counts the orders of each city."""

from opchain import StreamExecutionEnvironment, Types

ORDERS = [("Berlin", 2), ("Paris", 1), ("Berlin", 5), ("Rome", 4)]


def totals(orders):
    """The orders of each city so far, as (city, orders)."""
    return (
        orders.key_by(lambda order: order[0], key_type=Types.STRING())
        .reduce(lambda total, order: (total[0], total[1] + order[1]))
        .name("totals")
        .uid("totals")
    )


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    totals(env.from_collection(ORDERS)).print()
    env.execute("NAME")


if __name__ == "__main__":
    main()
'''

_TEST = """from job import totals

from opchain import Configuration, StreamExecutionEnvironment


def test_totals():
    configuration = Configuration()
    configuration.set_string("execution.target", "local")  # in this process, without Spark
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    orders = env.from_collection([("Berlin", 2), ("Paris", 1), ("Berlin", 5)])
    with totals(orders).execute_and_collect() as found:
        assert sorted(found) == [("Berlin", 2), ("Berlin", 7), ("Paris", 1)]
"""

_README = """# NAME

    pip install 'FOLDER[spark,test]'   # FOLDER is a checkout of opchain, which has no release yet
    opchain plan job.py            # which operators run together, and why not more
    opchain run --local job.py     # in this process, without Spark and Java
    opchain run job.py             # on Spark
    python -m pytest               # the test, in this process

`opchain lint job.py` finds mistakes. `opchain submit --master URL job.py` runs the job on a cluster.
"""


@click.command(
    "new",
    short_help="Creates a small project: a program, a test, a README.",
    epilog=examples("opchain new shop", "opchain new /projects/shop"),
)
@click.argument("folder", type=click.Path(path_type=Path))
def new(folder: Path) -> None:
    """Creates a small project in FOLDER, which runs unchanged: a program, its test, a README.

    FOLDER is created. It may exist if it is empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"{folder} exists and is not an empty folder; choose another name")
    name = re.sub(r"[^A-Za-z0-9_ -]", "", folder.resolve().name) or "job"
    files = {"job.py": _PROGRAM, "test_job.py": _TEST, "README.md": _README}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file).write_text(text.replace("NAME", name), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {error.filename}: {error.strerror}") from None
    answer(
        f"{folder} has job.py, test_job.py and README.md; begin with:\n"
        f"  cd {shlex.quote(str(folder))}\n  opchain plan job.py\n  opchain run --local job.py\n"
    )


COMMANDS = (new,)
