"""The base class of file formats, and lines of text as records.

Formats in which each line is a record decode a batch of lines at once. If a line is malformed, they decode the batch
again, line by line.
"""

from __future__ import annotations

import codecs
import io
from abc import ABC, abstractmethod
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Generic, TextIO, cast

from opchain.runtime.errors import short_repr
from opchain.runtime.files import line_blocks as blocks
from opchain.runtime.files.file_systems import file_system_of
from opchain.runtime.files.line_blocks import (
    LineBlock,
    decompressed,
    is_compressed,
    line_blocks,
    line_offsets,
)
from opchain.runtime.files.malformed import FAIL, MalformedRecord, MalformedRecords
from opchain.runtime.records.columns import Columns
from opchain.runtime.types.serialization import MARKED_CHARSETS, DeserializationSchema
from opchain.runtime.types.type_information import BasicTypeInfo
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain.runtime.files.file_range import FileRange

    Decode = Callable[[Sequence[str]], Sequence[Any]]
    from opchain.runtime.files.malformed import OnMalformed
    from opchain.runtime.types.record_types import RowTypeInfo
    from opchain.runtime.types.row import Row
    from opchain.runtime.types.type_information import TypeInformation


class FileFormat(ABC, Generic[T]):
    """How files become records. Subclass StreamFormat or BulkFormat for a custom format.

    A format is pickled with the program, so open resources in `read`.

    Attributes:
        on_malformed: The policy for malformed records, unless the builder of the source sets one.
    """

    on_malformed: OnMalformed = "fail"

    def can_be_cut(self, path: str) -> bool:  # noqa: ARG002 - depends on the name where it is compressed
        """Whether ranges of this file can be read separately. The default is False."""
        return False

    @abstractmethod
    def read(
        self, part: FileRange, batch_size: int, malformed: MalformedRecords
    ) -> Iterator[Sequence[T]]:
        """Yields the records that start in the range, in batches of about `batch_size`.

        Each record of a file must be read in exactly one range. The caller handles the range's `skip`. Report malformed
        records with `malformed.take()`.
        """

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The type of the records. None for records of any type."""
        return None

    @property
    def row_names(self) -> Sequence[str]:
        """The names of the fields, if `read` may yield rows as `Columns`. All batches of `Columns` have these fields."""
        return ()


class StreamFormat(FileFormat[T]):
    """A format that is read record by record. Flink: StreamFormat."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat[str]:
        """Reads each line as a record."""
        from opchain.runtime.formats.text_lines import TextLineFormat  # noqa: PLC0415 - its subclass

        return TextLineFormat(charset_name)


class BulkFormat(FileFormat[T]):
    """A format that is read in batches, such as Parquet. Flink: BulkFormat."""


PIECE_LENGTH = 1 << 16
"""The number of characters per batch. The results of a batch, such as its words, then fit into the processor's cache.

Word count took a third longer with batches of 4,096 lines.
"""


_UNDECODED = "\udcff"
"""Stands for bytes that cannot be decoded. No valid text of a file has a lone surrogate."""

_SIZE_OF_MARK = 4
_MARKS = "opchain.undecoded"
codecs.register_error(_MARKS, lambda error: (_UNDECODED, cast("UnicodeDecodeError", error).end))


class TextLineFormat(StreamFormat[str]):
    r"""Reads the lines of files, without their ends (\n, \r\n or \r).

    Flink: TextLineInputFormat, which does not split files. As in Flink, bytes that cannot be decoded become U+FFFD.
    Such lines are counted as errors of the source, and the first one is warned of. With `on_malformed("skip")` or an OutputTag, they are treated as
    malformed records.

    Raises:
        ValueError: The character set is unknown.
    """

    def __init__(self, charset_name: str = "UTF-8") -> None:
        self.charset_name = charset_name
        try:
            self._ends_are_bytes = "\r\n".encode(charset_name) == b"\r\n"
        except LookupError as error:
            raise ValueError(
                f"{charset_name!r} is not a character set that Python knows"
            ) from error

    def __repr__(self) -> str:
        return f"TextLineFormat({self.charset_name!r})"

    def get_produced_type(self) -> TypeInformation[str]:
        """Always STRING."""
        return BasicTypeInfo.STRING_TYPE_INFO()

    def can_be_cut(self, path: str) -> bool:
        """False if the file is compressed, or if a line end is not one byte in the character set."""
        return self._ends_are_bytes and not is_compressed(path)

    def read(
        self,
        part: FileRange,
        batch_size: int,
        malformed: MalformedRecords,
    ) -> Iterator[Sequence[str]]:
        """Yields the lines, block by block."""
        for text in self._texts(part, malformed):
            for piece in _pieces(text):
                lines = piece.removesuffix("\n").split("\n")
                for first in range(0, len(lines), batch_size):
                    yield lines[first : first + batch_size]

    def _texts(self, part: FileRange, malformed: MalformedRecords) -> Iterator[str]:
        """Yields blocks of whole lines. Each ends with a line feed, except possibly the last block of a file."""
        if not self._ends_are_bytes:
            yield from self._texts_of_whole_file(part.path, malformed)
            return
        for block in blocks.line_blocks(part):
            try:
                text = block.data.decode(self.charset_name)
            except UnicodeDecodeError:
                text = self._text_with_errors(block, part.path, malformed)
            if text:
                yield with_line_feeds(text)

    def _text_with_errors(
        self, block: blocks.LineBlock, path: str, malformed: MalformedRecords
    ) -> str:
        """The text of a block with lines that cannot be decoded."""
        texts, offset = [], block.offset
        for line in block.data.splitlines(keepends=True):
            try:
                texts.append(line.decode(self.charset_name))
            except UnicodeDecodeError as error:
                text = line.decode(self.charset_name, "replace")
                if self._is_kept(path, f"byte {offset}", text, error, malformed):
                    texts.append(text)
            offset += len(line)
        return "".join(texts)

    def _is_kept(
        self,
        path: str,
        place: str,
        line: str,
        error: UnicodeError,
        malformed: MalformedRecords,
    ) -> bool:
        """Reports a line with bytes that cannot be decoded; returns whether it is a record all the same."""
        text = line.rstrip("\r\n")
        if malformed.policy == FAIL:  # as in Flink, which has no other policy
            advice = (
                f"The lines are read as {self.charset_name}: give text_line_format() another character set, or call "
                ".on_malformed('skip') or .on_malformed(OutputTag(...)) on the source's builder"
            )
            malformed.replaced(f"'{path}', {place}", text, advice)
            return True
        detail = f": {error.reason}" if isinstance(error, UnicodeDecodeError) else ""
        reason = f"it is not {self.charset_name}{detail}"
        malformed.take(MalformedRecord(path, place, text, reason), error)
        return False

    def _texts_of_whole_file(self, path: str, malformed: MalformedRecords) -> Iterator[str]:
        number = 1
        for marked in self._marked_texts(path):
            lines = marked.count("\n")
            if _UNDECODED not in marked:
                yield marked
            elif text := self._without_marks(marked, number, path, malformed):
                yield text
            number += lines

    def _without_marks(
        self, marked: str, number: int, path: str, malformed: MalformedRecords
    ) -> str:
        """The text with U+FFFD for each mark. `number` is that of its first line."""
        texts = []
        for at, line in enumerate(_lines_of(marked), number):
            text = line.replace(_UNDECODED, "\ufffd")
            if text == line or self._is_kept(path, f"line {at}", text, UnicodeError(), malformed):
                texts.append(text)
        return "".join(texts)

    def _marked_texts(self, path: str) -> Iterator[str]:
        """Yields blocks of whole lines, with a mark for bytes that cannot be decoded."""
        with (
            file_system_of(path).open_input(path) as file,
            decompressed(file, path) as unpacked,
            cast("TextIO", _text_file(unpacked, self.charset_name)) as text_file,
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


def _text_file(file: Any, charset_name: str) -> io.TextIOWrapper:
    """The text of a file, with a mark for bytes that cannot be decoded."""
    charset = MARKED_CHARSETS.get(codecs.lookup(charset_name).name)
    if charset is not None:
        file = io.BufferedReader(file)
        charset_name = charset.codec_of(file.peek(_SIZE_OF_MARK))
    return io.TextIOWrapper(file, encoding=charset_name, errors=_MARKS, newline=None)


def _lines_of(text: str) -> list[str]:
    r"""The lines of a text with their \n."""
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [text[text.rfind("\n") + 1 :]]


def _pieces(text: str) -> Iterator[str]:
    """Splits the text into pieces of whole lines."""
    start = 0
    while start < len(text):
        stop = text.find("\n", start + PIECE_LENGTH) + 1 or len(text)
        yield text[start:stop]
        start = stop


def with_line_feeds(text: str) -> str:
    r"""Replaces all line ends by \n. Text with Unix line ends, the usual kind, is not copied."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
"""The exceptions that decoders raise for malformed text."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TextRowDeserializationSchema(DeserializationSchema["Row"]):
    """Reads a row from each message, which is a text.

    Args:
        row_type: The type of the rows.
        what: What a message is, for errors.
        advice: The call that makes the schema skip malformed messages, for errors.
        ignores_parse_errors: Whether malformed messages are skipped.
    """

    def __init__(
        self, row_type: RowTypeInfo, what: str, advice: str, *, ignores_parse_errors: bool
    ) -> None:
        self.row_type = row_type
        self.ignores_parse_errors = ignores_parse_errors
        self._what = what
        self._advice = advice
        self._decode: Decode | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_decode": None}

    @abstractmethod
    def decoder(self) -> Decode:
        """The function that decodes texts. It raises one of MALFORMED."""

    def deserialize(self, message: bytes) -> Row:
        """Returns the row of a message. None for a malformed message if parse errors are ignored.

        Raises:
            ValueError: The message is not a row of the type.
        """
        try:
            rows = self._decoded([message])
            if not rows:
                raise ValueError("it is empty")
        except MALFORMED as error:
            if self.ignores_parse_errors:
                return None  # type: ignore[return-value]  # as the contract has it
            raise ValueError(
                f"the message {short_repr(message)} is not {self._what} of {self.row_type!r} "
                f"({reason_of(error)}); correct it, or {self._advice}"
            ) from error
        row: Row = rows[0]
        return row

    def deserialize_batch(self, messages: Sequence[bytes]) -> Sequence[Row] | None:
        """Returns the rows of all messages. None if one is malformed or `null`, or if a subclass has its own `deserialize`."""
        if type(self).deserialize is not TextRowDeserializationSchema.deserialize:
            return None
        try:
            rows = self._decoded(messages)
        except MALFORMED:
            return None
        # Rows are `Columns` unless a message is `null`, which has no row.
        return rows if isinstance(rows, Columns) and len(rows) == len(messages) else None

    def _decoded(self, messages: Sequence[bytes]) -> Sequence[Any]:
        if self._decode is None:
            self._decode = self.decoder()
        return self._decode([message.decode().rstrip("\r\n") for message in messages])

    @property
    def row_names(self) -> Sequence[str]:
        """The names of the fields."""
        return self.row_type.get_field_names()

    def get_produced_type(self) -> RowTypeInfo:
        """The declared type."""
        return self.row_type


class LineRecordsFormat(StreamFormat[T]):
    """Reads each line of a UTF-8 file as a record. Empty lines are skipped."""

    def can_be_cut(self, path: str) -> bool:
        """False if the file is compressed."""
        return not is_compressed(path)

    @abstractmethod
    def decoder(self) -> Decode:
        """The function that decodes lines without their ends. It raises one of MALFORMED."""

    def first_line(self, part: FileRange) -> int:
        """The number of lines to skip at the start of a part of a file. The default is 0."""
        del part
        return 0

    def read(
        self, part: FileRange, batch_size: int, malformed: MalformedRecords
    ) -> Iterator[Sequence[T]]:
        """Yields the records of the lines, block by block."""
        decode = self.decoder()
        begin = self.first_line(part)
        for read in line_blocks(part):
            block = _without_mark(read)
            text, is_text = _text_of(block.data)
            lines = with_line_feeds(text).removesuffix("\n").split("\n")
            # Found once for a block, and only if it has a malformed line.
            offsets = cache(partial(line_offsets, block))
            for first in range(begin, len(lines), batch_size):
                chunk = lines[first : first + batch_size]
                try:
                    if not is_text:
                        raise ValueError("it is not UTF-8")
                    records: Sequence[T] = decode(chunk)
                except MALFORMED:
                    records = _good_ones(part.path, offsets, first, chunk, decode, malformed)
                if records:
                    yield records
            begin = max(0, begin - len(lines))


def _good_ones(
    path: str,
    offsets: Callable[[], list[int]],
    first: int,
    lines: Sequence[str],
    decode: Decode,
    malformed: MalformedRecords,
) -> list[Any]:
    """Decodes line by line. Returns the records, and reports malformed lines to `malformed`."""
    records: list[Any] = []
    for index, line in enumerate(lines, first):
        try:
            line.encode()  # bytes that are not UTF-8 were decoded to characters that cannot be encoded
            records += decode([line])
        except MALFORMED as error:  # noqa: PERF203 - only where a batch has a bad line
            shown = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            place = f"byte {offsets()[index]}"
            malformed.take(MalformedRecord(path, place, shown, reason_of(error)), error)
    return records


def reason_of(error: BaseException) -> str:
    """The reason why a text is malformed, in one line."""
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    text = " ".join(str(error).split())
    return text or type(error).__name__


def _without_mark(block: LineBlock) -> LineBlock:
    """Removes the byte order mark that some programs write at the start of a file."""
    if block.offset == 0 and block.data.startswith(_BYTE_ORDER_MARK):
        size = len(_BYTE_ORDER_MARK)
        return LineBlock(size, block.data[size:])
    return block


def _text_of(data: bytes) -> tuple[str, bool]:
    """The decoded text, and whether all of it was valid UTF-8."""
    try:
        return data.decode(), True
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape"), False
