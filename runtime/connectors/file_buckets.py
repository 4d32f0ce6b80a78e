"""Settings of a FileSink: the folder of a record, the names of files, and when a file is complete."""

from __future__ import annotations

import logging
import os
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from opchain.runtime.connectors.staged_files import STAGING
from opchain.runtime.errors import SinkError, short_repr
from opchain.runtime.files.file_systems import SCHEME_END, joined
from opchain.runtime.functions.date_patterns import DatePattern

_LOG = logging.getLogger("opchain.job")

_INTERVAL_MS = 60 * 1000

_LETTERS = "yuMdHms"
_MOST_LETTERS = {"M": 4, "d": 2, "H": 2, "m": 2, "s": 2}
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_RESERVED = "[]{}#"


class BucketAssigner(ABC):
    """Chooses the folder of a record. Flink: BucketAssigner, which Python programs can subclass here."""

    @abstractmethod
    def get_bucket_id(self, element: Any, timestamp: int | None, processing_time: int) -> str:
        """The folder below the base path; an empty string is the base path itself.

        Args:
            element: The record.
            timestamp: Its event time in milliseconds, or None.
            processing_time: The machine's time in milliseconds.
        """

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Writes all records to the base path."""
        return BasePathBucketAssigner()

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> BucketAssigner:
        """Chooses a folder by formatting the machine's time; by default one folder per hour.

        Args:
            format_str: A Java pattern with the letters y, M, d, H, m and s.
            timezone_id: A time zone such as `Europe/Berlin`. None: the machine's zone.
        """
        return DateTimeBucketAssigner(format_str, timezone_id)


def bucket_folder(base_path: str, bucket: Any) -> str:
    """The folder of a bucket: the base path, or a folder below it. Checked, since the id may come from a record.

    Raises:
        SinkError: The id is not a relative path that stays below the base path.
    """
    if bucket == "":
        return base_path
    if (
        not isinstance(bucket, str)
        or any(part in ("", ".", "..", STAGING) for part in bucket.removesuffix("/").split("/"))
        or "\0" in bucket
    ):
        raise SinkError(
            f"FileSink({base_path!r}): the bucket assigner returned {short_repr(bucket)}; it must return a "
            f"relative path below the base path, without '.', '..' and '{STAGING}', such as 'year=2026/month=1', or '' for the "
            "base path itself"
        )
    folder = joined(base_path, bucket.removesuffix("/"))
    if SCHEME_END not in base_path:
        root, real = os.path.realpath(base_path), os.path.realpath(folder)
        if not real.startswith(f"{root.rstrip(os.sep)}{os.sep}"):
            raise SinkError(
                f"FileSink({base_path!r}): the bucket {bucket!r} is a symbolic link to {real}, outside of the base "
                "path; let the assigner return another folder, or replace the link by a mount"
            )
    return folder


class BasePathBucketAssigner(BucketAssigner):
    """Writes all records to the base path."""

    def get_bucket_id(self, element: Any, timestamp: int | None, processing_time: int) -> str:  # noqa: ARG002 - the same for all
        """An empty string."""
        return ""


class DateTimeBucketAssigner(BucketAssigner):
    """Chooses a folder by formatting the machine's time; by default one folder per hour.

    >>> DateTimeBucketAssigner("yyyy/MM/dd", "UTC").get_bucket_id("any", None, 0)
    '1970/01/01'
    """

    def __init__(self, format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> None:
        self.format_str = format_str
        self.timezone_id = timezone_id
        self._zone()
        self._pattern = _pattern_of(format_str)
        self._last: tuple[int, str] | None = None

    def get_bucket_id(self, element: Any, timestamp: int | None, processing_time: int) -> str:  # noqa: ARG002 - by the clock
        """The folder of the time."""
        second = processing_time // 1000
        if self._last is None or self._last[0] != second:
            time = datetime.fromtimestamp(second, tz=timezone.utc).astimezone(self._zone())
            self._last = (second, self._pattern.format(time))
        return self._last[1]

    def _zone(self) -> tzinfo | None:
        if self.timezone_id is None:
            return None
        try:
            return ZoneInfo(self.timezone_id)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(f"unknown time zone {self.timezone_id!r}") from error


def _pattern_of(format_str: str) -> DatePattern:
    """The pattern of a format that Java accepts.

    Raises:
        ValueError: Java refuses the format, or it has letters that are not supported.
    """
    try:
        pattern = DatePattern(format_str, _LETTERS)
    except ValueError as error:
        known = ", ".join(_LETTERS)
        raise ValueError(f"the format of a bucket: {error}; its letters may be {known}") from None
    if not set(_RESERVED).isdisjoint(_QUOTED.sub("", format_str)):
        raise ValueError(
            f"the format {format_str!r} of a bucket has one of {_RESERVED} outside of quotes; quote it"
        )
    for letter, count, text in pattern.parts:
        if letter and count > _MOST_LETTERS.get(letter, count):
            raise ValueError(
                f"the format {format_str!r} of a bucket has {text!r}; the letter may occur once or twice"
            )
    return pattern


@dataclass(frozen=True)
class OutputFileConfig:
    """The prefix and suffix of file names. Flink: OutputFileConfig."""

    part_prefix: str
    part_suffix: str

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Starts with the prefix `part` and no suffix."""
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """The prefix of file names."""
        return self.part_prefix

    def get_part_suffix(self) -> str:
        """The suffix of file names."""
        return self.part_suffix

    def name(self, writer_id: str, number: int) -> str:
        """The name of a file, as in Flink: `part-<random id of the writer>-<number>.txt`."""
        return f"{self.part_prefix}-{writer_id}-{number}{self.part_suffix}"

    class OutputFileConfigBuilder:
        """Builds an OutputFileConfig."""

        def __init__(self) -> None:
            self._prefix = "part"
            self._suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Sets the prefix of file names."""
            self._prefix = _checked(prefix, "with_part_prefix")
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Sets the suffix of file names, such as `.txt`."""
            self._suffix = _checked(suffix, "with_part_suffix")
            return self

        def build(self) -> OutputFileConfig:
            """The OutputFileConfig."""
            return OutputFileConfig(self._prefix, self._suffix)


@dataclass(frozen=True)
class RollingPolicy:
    """When a file is complete and the next one begins. Flink: RollingPolicy.

    With every policy, files are completed at a checkpoint and at the end of the input. With Flink's default policy a file
    may continue after a checkpoint.
    """

    part_size: int | None = None

    @staticmethod
    def default_rolling_policy(
        part_size: int = 128 * 1024 * 1024,
        rollover_interval: int = _INTERVAL_MS,
        inactivity_interval: int = _INTERVAL_MS,
    ) -> DefaultRollingPolicy:
        """Begins a new file when one is larger than `part_size` bytes.

        The two intervals (milliseconds) have no effect, and log a warning: the contents of files must not depend on the
        speed of the machine.
        """
        for what, value in (
            ("part_size", part_size),
            ("rollover_interval", rollover_interval),
            ("inactivity_interval", inactivity_interval),
        ):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"a rolling policy's {what} is {value!r}; it must be at least 1")
            if what != "part_size" and value != _INTERVAL_MS:
                _LOG.warning(
                    "default_rolling_policy(%s=%d) has no effect: files are rolled by their size and when an epoch "
                    "ends, not by a clock",
                    what,
                    value,
                )
        return DefaultRollingPolicy(part_size)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Begins a new file at each checkpoint only."""
        return OnCheckpointRollingPolicy()

    def is_full(self, size: int) -> bool:
        """Whether a file of this size is complete."""
        return self.part_size is not None and size > self.part_size


class DefaultRollingPolicy(RollingPolicy):
    """Made by `RollingPolicy.default_rolling_policy`."""


class OnCheckpointRollingPolicy(RollingPolicy):
    """Made by `RollingPolicy.on_checkpoint_rolling_policy`. Tables also set a size, as Flink's TableRollingPolicy does."""


def _checked(text: str, call: str) -> str:
    if not isinstance(text, str) or "/" in text:
        raise ValueError(f"{call} got {text!r}; a part of a file name must be a str without '/'")
    return text
