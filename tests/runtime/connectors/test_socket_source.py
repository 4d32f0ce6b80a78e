from __future__ import annotations

import os
import select
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors import socket_source
from opchain.runtime.connectors.socket_source import SocketTextStreamFunction

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def server(*connections: list[bytes]) -> Iterator[int]:
    """A server that sends each client its texts and closes the connection; returns its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for pieces in connections:
                client, _ = listening.accept()
                with client:
                    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    for piece in pieces:
                        client.sendall(piece)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def environment() -> StreamExecutionEnvironment:
    configuration = Configuration().set_string("execution.target", "local")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


@pytest.mark.parametrize(
    ("pieces", "delimiter", "texts"),
    [
        ([b"to be\nor not\r\n\nto be"], "\n", ["to be", "or not", "", "to be"]),
        ([b"\xc3", b"\xa4\n", b"\xffb\n"], "\n", ["ä", "\ufffdb"]),
        ([b"a;", b"b\r;c"], ";", ["a", "b\r", "c"]),
        ([b"a<", b">b<>"], "<>", ["a", "b"]),
        ([], "\n", []),
    ],
)
def test_lines_are_read_as_they_were_sent(
    pieces: list[bytes], delimiter: str, texts: list[str]
) -> None:
    with server(pieces) as port:
        env = environment()
        stream = env.socket_text_stream("127.0.0.1", port, delimiter)
        with stream.map(str).execute_and_collect() as found:
            assert list(found) == texts


def test_a_closed_connection_is_reopened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_source, "RETRY_S", 0.0)
    with server([b"a\n", b"b"], [b"c\n"]) as port:
        stream = environment().socket_text_stream("127.0.0.1", port, max_retry=1)
        with stream.execute_and_collect() as found:
            assert list(found) == ["a", "b", "c"]


def test_a_line_is_emitted_before_the_next_one_is_sent() -> None:
    """The job must have processed a line before the server sends the next one."""
    reading, writing = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        env = environment()
        stream = env.socket_text_stream("127.0.0.1", listening.getsockname()[1])
        stream.map(lambda text: os.write(writing, text.encode())).print()
        job = env.execute_async("socket")
        client, _ = listening.accept()
        with client:
            for number in (b"1", b"2", b"3"):
                client.sendall(number + b"\n")
                assert select.select([reading], [], [], 60)[0]
                assert os.read(reading, 1) == number
        job.get_job_execution_result().result()
    os.close(reading)
    os.close(writing)


def test_a_job_can_be_cancelled_while_the_server_sends_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        env = environment()
        env.socket_text_stream("127.0.0.1", listening.getsockname()[1], max_retry=-1).print()
        job = env.execute_async("socket")
        client, _ = listening.accept()
        with client:
            job.cancel().result()
            assert client.recv(1) == b""


def test_the_error_names_an_unreachable_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    env = environment()
    env.socket_text_stream("127.0.0.1", port).print()
    with pytest.raises(ConnectionError, match=f"cannot connect to 127.0.0.1:{port} .*start the"):
        env.execute("socket")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("host", 0), "the port of a socket stream is 0"),
        (("host", 1, ""), "the delimiter of a socket stream is empty"),
        (("host", 1, "\n", -2), "max_retry of a socket stream is -2; it must be 0 or more, or -1"),
    ],
)
def test_invalid_ports_delimiters_and_retries_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SocketTextStreamFunction(*arguments)


def test_cancelling_before_the_job_runs_does_nothing() -> None:
    function = SocketTextStreamFunction("host", 1)
    function.cancel()
    assert repr(function) == "Socket Stream (host:1)"
