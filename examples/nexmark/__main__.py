"""The command line: runs a query, or generates events for all of them."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from examples.nexmark import generator
from examples.nexmark.job import QUERIES, draw
from opchain import Configuration, StreamExecutionEnvironment
from opchain.datastream import RuntimeExecutionMode


def main(arguments: list[str] | None = None) -> int:
    """Runs the command. Returns exit code 0 if the whole input was processed."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["generate"]:
        return generator.main(words[1:])
    options = _parser().parse_args(words)
    env = environment(options.mode, options.parallelism, is_local=options.local)
    try:
        _check_paths(options)
        draw(
            env,
            options.query,
            options.input,
            str(options.output),
            side_input=options.side_input,
            late_folder=options.late,
            watermark_after_every_event=options.watermark == "every-event",
        )
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    options.output.mkdir(parents=True, exist_ok=True)
    env.execute(f"nexmark {options.query}")
    return 0


def environment(mode: str, parallelism: int, *, is_local: bool) -> StreamExecutionEnvironment:
    """An environment that runs jobs on Spark, or in this process."""
    configuration = Configuration()
    if is_local:
        configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_runtime_mode(RuntimeExecutionMode[mode])
    env.set_parallelism(parallelism)
    return env


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.nexmark",
        description="Runs a query of the Nexmark benchmark. examples/nexmark/q*.py describe the queries.",
        epilog="To generate events, see python -m examples.nexmark generate --help.",
    )
    parser.add_argument("query", choices=QUERIES, metavar="qN", help="q0 to q22, or generate")
    parser.add_argument(
        "--input", required=True, help="file of JSON lines, or folder of such files"
    )
    parser.add_argument("--output", required=True, type=Path, help="empty or new folder")
    parser.add_argument("--side-input", metavar="FILE", help="CSV of key and value, for q13")
    parser.add_argument(
        "--parallelism", type=generator.positive, default=os.cpu_count() or 1, metavar="N"
    )
    parser.add_argument("--local", action="store_true", help="run in this process, without Spark")
    parser.add_argument(
        "--mode",
        choices=("STREAMING", "BATCH"),
        default="STREAMING",
        help="BATCH: everything is sorted and nothing is late (default: %(default)s)",
    )
    parser.add_argument(
        "--watermark",
        choices=("periodic", "every-event"),
        default="periodic",
        help="every-event: read with parallelism 1, and emit a watermark after each event (default: %(default)s)",
    )
    parser.add_argument(
        "--late",
        metavar="DIR",
        help="folder for late events that windows of q5, q7, q8 and q11 drop",
    )
    return parser


def _check_paths(options: argparse.Namespace) -> None:
    """Checks the input and output paths before the job starts.

    Raises:
        ValueError: If the input does not exist, or the output is a file or a folder with files.
    """
    for path in (options.input, options.side_input):
        if path is not None and not Path(path).exists():
            raise ValueError(f"there is no file or folder {path}")
    output: Path = options.output
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output} is a file: use an empty or a new folder")
    if any(_is_data(file) for file in output.rglob("*")):
        # The new files would mix with the old ones, and readers would take both for one result.
        raise ValueError(f"{output} already contains files: use an empty folder")


def _is_data(path: Path) -> bool:
    return path.is_file() and not path.name.startswith((".", "_"))


if __name__ == "__main__":
    sys.exit(main())
