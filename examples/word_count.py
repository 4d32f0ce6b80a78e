"""Counts words: the smallest whole program, with one exchange.

In the plan, the source, the words and the pairs share a vertex. The count has its own vertex, because `key_by` sends
each word to the subtask that owns its key group. A count is printed after each word; in batch mode once, at the end.

    $ python examples/word_count.py
    ('to', 1)
    ('be', 1)
    ...
    ('to', 4)
    ...
    $ opchain plan examples/word_count.py
    $ opchain run examples/word_count.py -D execution.runtime-mode=BATCH --input README.md
"""

import argparse
import re

from opchain import StreamExecutionEnvironment
from opchain.common import WatermarkStrategy
from opchain.datastream import DataStream
from opchain.datastream.connectors.file_system import FileSource, StreamFormat

POEM = [
    "To be, or not to be,--that is the question:--",
    "Whether 'tis nobler in the mind to suffer",
    "The slings and arrows of outrageous fortune",
    "Or to take arms against a sea of troubles,",
]


def words_of(line: str) -> list[str]:
    return re.findall(r"\w+", line.lower())


def read_lines(env: StreamExecutionEnvironment, path: str | None) -> DataStream[str]:
    if path is None:
        return env.from_collection(POEM)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), path).build()
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")


def build(env: StreamExecutionEnvironment, path: str | None = None) -> None:
    counts = (
        read_lines(env, path)
        .flat_map(words_of)
        .name("words")
        .map(lambda word: (word, 1))
        .key_by(lambda pair: pair[0])
        .sum(1)
        .name("count")
    )
    counts.print()


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts words.")
    parser.add_argument("--input", help="a text file, folder or pattern; a poem if not given")
    arguments = parser.parse_args()
    env = StreamExecutionEnvironment.get_execution_environment()
    build(env, arguments.input)
    env.execute("word count")


if __name__ == "__main__":
    main()
