"""A source of text from a socket."""

from __future__ import annotations

import codecs
import socket
import threading
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.source_sink_functions import SourceFunction
from opchain.runtime.time import MIN_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator

RETRY_S = 0.5
_CHUNK_SIZE = 1 << 16


class SocketTextStreamFunction(SourceFunction[str]):
    r"""The texts between delimiters that a server sends; ends when the server closes the connection.

    Flink: `SocketTextStreamFunction`. As in Flink, text after the last delimiter is a record, too. A \r before the delimiter
    \n is dropped. Text that was received is lost if the job fails.

    Args:
        hostname: The server.
        port: Its port.
        delimiter: The text that ends a record; not empty.
        max_retry: The number of new connections after the first one has ended, one every half second; -1 for no limit.

    Raises:
        ValueError: The port or the number of retries is invalid, or the delimiter is empty.
    """

    def __init__(self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0) -> None:
        if not 0 < port < 1 << 16:
            raise ValueError(f"the port of a socket stream is {port}; it must be 1 to 65535")
        if not delimiter:
            raise ValueError("the delimiter of a socket stream is empty; it needs a character")
        if max_retry < -1:
            raise ValueError(
                f"max_retry of a socket stream is {max_retry}; it must be 0 or more, or -1 to retry forever"
            )
        self.hostname = hostname
        self.port = port
        self.delimiter = delimiter
        self.max_retry = max_retry
        self._is_cancelled: Any = None
        self._connection: socket.socket | None = None

    def __repr__(self) -> str:
        return f"Socket Stream ({self.hostname}:{self.port})"

    def open(self, runtime_context: Any) -> None:  # noqa: ARG002 - not needed
        """Creates an object that cannot be pickled with the function."""
        self._is_cancelled = threading.Event()

    def run(self, ctx: SourceFunction.SourceContext[str]) -> None:
        """Emits the texts.

        Raises:
            ConnectionError: The server cannot be reached.
        """
        retries = 0
        while not self._is_cancelled.is_set():
            rest = ""
            for text in self._received():
                *records, rest = (rest + text).split(self.delimiter)
                self._emit(ctx, records)
            if rest:
                self._emit(ctx, [rest])
            if self._is_cancelled.is_set() or retries == self.max_retry:
                return
            retries += 1
            self._is_cancelled.wait(RETRY_S)

    def cancel(self) -> None:
        """Ends the connection."""
        if self._is_cancelled is not None:
            self._is_cancelled.set()
        connection = self._connection
        if connection is not None:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # already closed by the server or by `run`

    def _received(self) -> Iterator[str]:
        """The text that the server sends."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        with self._connected() as connection:
            self._connection = connection
            try:
                while not self._is_cancelled.is_set() and (data := connection.recv(_CHUNK_SIZE)):
                    yield decoder.decode(data)
                yield decoder.decode(b"", final=True)
            finally:
                self._connection = None

    def _connected(self) -> socket.socket:
        try:
            return socket.create_connection((self.hostname, self.port))
        except OSError as error:
            raise ConnectionError(
                f"the socket stream cannot connect to {self.hostname}:{self.port} ({error}); start the "
                "server before the job"
            ) from error

    def _emit(self, ctx: SourceFunction.SourceContext[str], records: list[str]) -> None:
        strips = self.delimiter == "\n"
        for record in records:
            with ctx.get_checkpoint_lock():
                ctx.collect(record.removesuffix("\r") if strips else record)
        if records:
            # The lowest watermark changes nothing, but flushes the records: the next ones may come much later.
            ctx.emit_watermark(MIN_LONG_VALUE)
