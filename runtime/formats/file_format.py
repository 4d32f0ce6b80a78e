"""What a FileSource needs to know of a format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.files.file_range import FileRange
    from opchain.runtime.files.malformed import MalformedRecords, OnMalformed
    from opchain.runtime.types.type_information import TypeInformation


class FileFormat(ABC, Generic[T]):
    """How files become records. Subclass StreamFormat or BulkFormat for a format of your own.

    A format is pickled with the program; what it opens, it opens in `read`.

    Attributes:
        on_malformed: What becomes of text that is not a record, unless the source's builder says.
    """

    on_malformed: OnMalformed = "fail"

    def can_be_cut(self, path: str) -> bool:  # noqa: ARG002 - depends on the name where it is compressed
        """Whether ranges of this file can be read apart; no, unless overridden."""
        return False

    @abstractmethod
    def read(
        self, part: FileRange, batch_size: int, malformed: MalformedRecords
    ) -> Iterator[Sequence[T]]:
        """The records that begin in the range, in batches of about `batch_size`.

        Each record of a file must come from exactly one of the ranges that make up the file. The
        range's `skip` is the caller's business. What is not a record goes to `malformed.take()`.
        """

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The records' type; None where they are of any."""
        return None


class StreamFormat(FileFormat[T]):
    """A format that is read from its beginning on, record after record. Flink: StreamFormat."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat[str]:
        """Each line is a record."""
        from opchain.runtime.formats.text_lines import TextLineFormat  # noqa: PLC0415 - its subclass

        return TextLineFormat(charset_name)


class BulkFormat(FileFormat[T]):
    """A format that is read in batches, such as Parquet. Flink: BulkFormat."""
