"""Lines of text, as records, read in large blocks."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, TextIO, cast

from opchain.runtime.connectors.files import line_blocks as blocks
from opchain.runtime.connectors.files.compression import decompressed, is_compressed
from opchain.runtime.connectors.files.file_format import StreamFormat
from opchain.runtime.connectors.files.file_system import file_system_of
from opchain.runtime.formats.line_batch import LineBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.connectors.files.file_range import FileRange
    from opchain.runtime.connectors.files.malformed import MalformedRecords


PIECE_LENGTH = 1 << 16
"""Characters whose lines make a batch: what a chain makes of them, words for example, stays in the cache.

Word count took a third longer with batches of 4,096 lines.
"""


class TextLineFormat(StreamFormat[str]):
    r"""The lines of files, without their ends (\n, \r\n or \r).

    Flink: TextLineInputFormat, which does not cut files. As there, bytes that are no text become U+FFFD.

    Raises:
        ValueError: There is no such character set.
    """

    def __init__(self, charset_name: str = "UTF-8") -> None:
        self.charset_name = charset_name
        try:
            self._ends_are_bytes = "\r\n".encode(charset_name) == b"\r\n"
        except LookupError as error:
            raise ValueError(f"{charset_name!r} is no character set that Python knows") from error

    def __repr__(self) -> str:
        return f"TextLineFormat({self.charset_name!r})"

    def can_be_cut(self, path: str) -> bool:
        """Unless it is compressed, or a line end is not one byte in its character set."""
        return self._ends_are_bytes and not is_compressed(path)

    def read(
        self,
        part: FileRange,
        batch_size: int,
        malformed: MalformedRecords,  # noqa: ARG002 - every text is a line
    ) -> Iterator[Sequence[str]]:
        """The lines, block by block."""
        for text in self._texts(part):
            for piece in _pieces(text):
                lines = LineBatch(piece.removesuffix("\n"))
                if len(lines) <= batch_size:
                    yield lines
                    continue
                for first in range(0, len(lines), batch_size):
                    yield lines[first : first + batch_size]

    def _texts(self, part: FileRange) -> Iterator[str]:
        """Blocks of whole lines, ended by a line feed each, but maybe for the file's last."""
        if not self._ends_are_bytes:
            yield from self._texts_of_whole_file(part.path)
            return
        for _, block in blocks.line_blocks(part):
            yield with_line_feeds(block.decode(self.charset_name, "replace"))

    def _texts_of_whole_file(self, path: str) -> Iterator[str]:
        with (
            file_system_of(path).open_input(path) as file,
            decompressed(file, path) as unpacked,
            cast(
                "TextIO",
                io.TextIOWrapper(
                    unpacked, encoding=self.charset_name, errors="replace", newline=None
                ),
            ) as text_file,
        ):
            pending: list[str] = []
            while text := text_file.read(blocks.BLOCK_SIZE):
                border = text.rfind("\n") + 1
                if border:
                    yield "".join((*pending, text[:border]))
                    pending = []
                pending.append(text[border:])
            if rest := "".join(pending):
                yield rest


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of whole lines."""
    start = 0
    while start < len(text):
        stop = text.find("\n", start + PIECE_LENGTH) + 1 or len(text)
        yield text[start:stop]
        start = stop


def with_line_feeds(text: str) -> str:
    r"""The text with \n for all line ends; text with Unix line ends, the usual kind, is not copied."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
