"""FileSource with PyFlink's builder: a format, paths, and how to look for files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from opchain.runtime.connectors.text_files import TextLineSource
from opchain.runtime.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    import os

    from opchain.runtime.time import Duration


class StreamFormat:
    """How the bytes of a file become records. Flink: StreamFormat."""

    def __init__(self, charset_name: str) -> None:
        self.charset_name = charset_name

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Each line is a record."""
        return StreamFormat(charset_name)


class FileSource(TextLineSource):
    """A source of files; see TextLineSource for how they are read. Flink: FileSource."""

    @staticmethod
    def for_record_stream_format(
        stream_format: StreamFormat, *paths: str | os.PathLike[str]
    ) -> FileSourceBuilder:
        """Starts a source of the records in files, in folders, or behind patterns."""
        if not isinstance(stream_format, StreamFormat):
            raise TypeError(
                f"for_record_stream_format got {stream_format!r}; it takes a StreamFormat such as "
                "StreamFormat.text_line_format()"
            )
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: Any, *paths: str | os.PathLike[str]) -> NoReturn:
        """Not supported.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError(
            f"FileSource.for_bulk_file_format({bulk_format!r}, {', '.join(map(repr, paths))}) is not "
            "supported: only lines of text are read; write a Source for another format, or read it with Spark"
        )


class FileSourceBuilder:
    """A file source in the making. Flink: FileSourceBuilder."""

    def __init__(
        self, stream_format: StreamFormat, paths: tuple[str | os.PathLike[str], ...]
    ) -> None:
        self._format = stream_format
        self._paths = paths

    def process_static_file_set(self) -> FileSourceBuilder:
        """Reads the files that are there when the job starts, and ends: the default."""
        return self

    def monitor_continuously(self, discovery_interval: Duration) -> NoReturn:
        """Not supported.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError(
            f"FileSource.monitor_continuously({discovery_interval}) is not supported: files are read "
            "once; leave it out, and run the job again for new files"
        )

    def set_file_enumerator(self, file_enumerator: Any) -> NoReturn:
        """Not supported.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError(
            f"FileSource.set_file_enumerator({file_enumerator!r}) is not supported: files are found by their "
            "paths, and cut into parts where the format allows it; leave it out"
        )

    def set_split_assigner(self, split_assigner: Any) -> NoReturn:
        """Not supported.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError(
            f"FileSource.set_split_assigner({split_assigner!r}) is not supported: each subtask reads a "
            "contiguous part, which makes results the same in every run; leave it out"
        )

    def build(self) -> FileSource:
        """The source."""
        return FileSource(*self._paths, charset_name=self._format.charset_name)
