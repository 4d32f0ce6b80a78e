"""Formats in which each line is a record: decoded in batches, and line by line where one is bad."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from opchain.runtime.files.compression import is_compressed
from opchain.runtime.files.line_blocks import LineBlock, line_blocks, line_offset
from opchain.runtime.files.malformed import MalformedRecord
from opchain.runtime.formats.file_format import StreamFormat
from opchain.runtime.formats.text_lines import with_line_feeds
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain.runtime.files.file_range import FileRange
    from opchain.runtime.files.malformed import MalformedRecords

    Decode = Callable[[Sequence[str]], Sequence[Any]]

MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
"""What decoders raise where text is not a record."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineRecordsFormat(StreamFormat[T]):
    """Lines in UTF-8, each of which is a record, or none where it is empty."""

    def can_be_cut(self, path: str) -> bool:
        """Unless it is compressed."""
        return not is_compressed(path)

    @abstractmethod
    def decoder(self) -> Decode:
        """What gives the records of lines (without their ends); raises one of MALFORMED."""

    def first_line(self, part: FileRange) -> int:
        """How many lines at the beginning of a part are none of its records; none, unless overridden."""
        del part
        return 0

    def read(
        self, part: FileRange, batch_size: int, malformed: MalformedRecords
    ) -> Iterator[Sequence[T]]:
        """The records of the lines, block by block."""
        decode = self.decoder()
        begin = self.first_line(part)
        for read in line_blocks(part):
            block = _without_mark(read)
            text, is_text = _text_of(block.data)
            lines = with_line_feeds(text).removesuffix("\n").split("\n")
            for first in range(begin, len(lines), batch_size):
                chunk = lines[first : first + batch_size]
                try:
                    if not is_text:
                        raise ValueError("it is not UTF-8")
                    records: Sequence[T] = decode(chunk)
                except MALFORMED:
                    records = _good_ones(part.path, block, first, chunk, decode, malformed)
                if records:
                    yield records
            begin = max(0, begin - len(lines))


def _good_ones(
    path: str,
    block: LineBlock,
    first: int,
    lines: Sequence[str],
    decode: Decode,
    malformed: MalformedRecords,
) -> list[Any]:
    """The records of the lines that have one; the others go to `malformed`."""
    records: list[Any] = []
    for index, line in enumerate(lines, first):
        try:
            line.encode()  # bytes that are not UTF-8 have become what cannot be encoded
            records += decode([line])
        except MALFORMED as error:  # noqa: PERF203 - only where a batch has a bad line
            shown = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            place = f"byte {line_offset(block, index)}"
            malformed.take(MalformedRecord(path, place, shown, reason_of(error)), error)
    return records


def reason_of(error: BaseException) -> str:
    """Why text is not a record, in one line."""
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    text = " ".join(str(error).split())
    return text or type(error).__name__


def _without_mark(block: LineBlock) -> LineBlock:
    """Without the mark that some programs write at the beginning of a file."""
    if block.offset == 0 and block.data.startswith(_BYTE_ORDER_MARK):
        size = len(_BYTE_ORDER_MARK)
        return LineBlock(size, block.data[size:])
    return block


def _text_of(data: bytes) -> tuple[str, bool]:
    """The text, and whether all of it was UTF-8."""
    try:
        return data.decode(), True
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape"), False
