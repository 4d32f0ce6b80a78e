"""File sources for one format: TextLineSource for `read_text_file`, and AvroInputFormat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.file_source import FileSource
from opchain.runtime.files.file_range import FileRange
from opchain.runtime.files.line_blocks import line_blocks
from opchain.runtime.formats.avro_files import AvroRecordFormat
from opchain.runtime.formats.text_lines import TextLineFormat

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from opchain.runtime.formats.avro_files import AvroSchema

__all__ = ["AvroInputFormat", "FileRange", "TextLineSource"]


class TextLineSource(FileSource[str]):
    """The lines of text files; see FileSource for how they are found and dealt out.

    Args:
        *paths: Files, folders (with all that is below them), or patterns.
        charset_name: How the bytes are read as text.
    """

    def __init__(self, *paths: str | os.PathLike[str], charset_name: str = "UTF-8") -> None:
        super().__init__(TextLineFormat(charset_name), *paths)
        self.charset_name = charset_name

    def read_blocks(self, split: FileRange) -> Iterator[bytes]:
        """The lines that start in the range, as blocks of whole lines: for parsers of bytes.

        Line ends are as in the file. The character set must be one in which files can be cut.
        """
        for block in line_blocks(split):
            yield block.data


class AvroInputFormat(FileSource[dict[str, Any]]):
    """The records of Avro files, for `env.create_input()`. Flink: AvroInputFormat of PyFlink.

    Args:
        path: A file, a folder, or a pattern.
        schema: What records have; files may have been written with an older one.
    """

    def __init__(self, path: str | os.PathLike[str], schema: AvroSchema) -> None:
        super().__init__(AvroRecordFormat(schema), path)
