"""Requests to a running job through the folder of its checkpoints, from other processes and other machines.

The client publishes `requests/ID.json`. The run that holds the folder answers in `requests/ID.answer`, and the client
removes the answer. Both are JSON, and are signed if checkpoints are signed. A run refuses the requests that it finds when
it starts, because they were meant for an earlier run.
"""

from __future__ import annotations

import hmac
import json
import logging
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from opchain.runtime.checkpoint.run_lease import running_run
from opchain.runtime.errors import CheckpointError, CorruptCheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.runtime.checkpoint.storage import CheckpointStorage

_LOG = logging.getLogger("opchain.job")

FOLDER = "requests"
_LOOK_EVERY_S = 0.5

Kind = Literal["savepoint", "stop", "cancel"]


@dataclass(frozen=True, slots=True)
class JobRequest:
    """One request.

    Attributes:
        request_id: Its unique id, in hexadecimal digits.
        kind: `savepoint` takes a savepoint, `stop` also ends the job, and `cancel` ends it without a savepoint.
        target: The folder of the savepoint; None for a new folder in `directory`.
        directory: The parent of a new folder; None for the job's default directory.
        drain: Whether event time ends before the job stops: all windows fire.
    """

    request_id: str
    kind: Kind
    target: str | None = None
    directory: str | None = None
    drain: bool = False


def post(storage: CheckpointStorage, request: JobRequest) -> None:
    """Sends a request to the run that holds a directory.

    Raises:
        CheckpointError: No live run holds it.
    """
    _require_running(storage)
    storage.publish(_name(request.request_id, "json"), _signed(storage, asdict(request), "request"))


def await_answer(
    storage: CheckpointStorage, request: JobRequest, timeout_s: float
) -> dict[str, Any]:
    """Waits for the answer of the run, and removes the request and the answer.

    Raises:
        CheckpointError: The run refuses, ends without an answer, or takes too long.
    """
    name = _name(request.request_id, "answer")
    until = time.monotonic() + timeout_s
    try:
        while True:
            with suppress(FileNotFoundError):
                answer = _verified(storage, name, storage.read(name), "answer")
                break
            if running_run(storage) is None:
                with suppress(FileNotFoundError):
                    answer = _verified(storage, name, storage.read(name), "answer")
                    break
                raise CheckpointError(f"the job at {storage.url} ended before it answered")
            if time.monotonic() >= until:
                raise CheckpointError(
                    f"the job at {storage.url} has not answered within {timeout_s:g} s, so the request is "
                    "withdrawn. Usual reasons are an epoch that takes longer, or a driver that hangs"
                )
            time.sleep(_LOOK_EVERY_S)
    finally:
        storage.delete(_name(request.request_id, "json"))
    storage.delete(name)
    if answer.get("request_id") != request.request_id:
        raise CorruptCheckpointError(storage.full_name(name), "is the answer to another request")
    if answer.get("error") is not None:
        raise CheckpointError(f"the job at {storage.url} refused: {answer['error']}")
    return answer


def pending_requests(storage: CheckpointStorage) -> Iterator[JobRequest]:
    """The requests without an answer, by id. A request that is damaged, or not signed by the key, is refused."""
    names = storage.children(FOLDER)
    for name in names:
        request_id, _, kind = name.partition(".")
        if kind == "json" and f"{request_id}.answer" not in names:
            try:
                data = storage.read(f"{FOLDER}/{name}")
            except FileNotFoundError:  # withdrawn just now
                continue
            try:
                values = _verified(storage, f"{FOLDER}/{name}", data, "request")
                request = _request(storage, request_id, values)
            except CorruptCheckpointError as error:
                _LOG.warning("refusing a request: %s", error)
                answer_request(storage, request_id, error=str(error))
            else:
                yield request


def _request(storage: CheckpointStorage, request_id: str, values: dict[str, Any]) -> JobRequest:
    places = (values.get("target"), values.get("directory"))
    if (
        set(values) == {item.name for item in fields(JobRequest)}
        and values["request_id"] == request_id
        and values["kind"] in get_args(Kind)
        and all(place is None or isinstance(place, str) for place in places)
    ):
        return JobRequest(**values)
    raise CorruptCheckpointError(
        storage.full_name(_name(request_id, "json")), "is not a request that this version supports"
    )


def answer_request(
    storage: CheckpointStorage, request_id: str, path: str | None = None, error: str | None = None
) -> None:
    """Writes the answer to a request."""
    answer = {"request_id": request_id, "path": path, "error": error}
    with suppress(FileExistsError):
        storage.publish(_name(request_id, "answer"), _signed(storage, answer, "answer"))


def refuse_old_requests(storage: CheckpointStorage) -> None:
    """Refuses requests to an earlier run, and removes answers that were not read."""
    names = storage.children(FOLDER)
    for name in names:
        request_id, _, kind = name.partition(".")
        if kind == "answer" and f"{request_id}.json" not in names:
            storage.delete(f"{FOLDER}/{name}")
        elif kind == "json":
            reason = "the job was started again; ask again"
            answer_request(storage, request_id, error=reason)


def _require_running(storage: CheckpointStorage) -> None:
    if running_run(storage) is None:
        raise CheckpointError(
            f"no running job has its checkpoints in {storage.url}: pass the folder of its execution.checkpointing.dir"
        )


def _name(request_id: str, kind: str) -> str:
    return f"{FOLDER}/{request_id}.{kind}"


def _signed(storage: CheckpointStorage, values: dict[str, Any], purpose: str) -> bytes:
    text = json.dumps(values, sort_keys=True)
    signature = None if storage.key is None else storage.key.signature(text.encode(), purpose)
    return json.dumps({purpose: text, "signature": signature}).encode()


def _verified(storage: CheckpointStorage, name: str, data: bytes, purpose: str) -> dict[str, Any]:
    try:
        found = json.loads(data)
        text, signature = found[purpose], found["signature"]
        values = json.loads(text)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptCheckpointError(
            storage.full_name(name), f"is not a valid {purpose}"
        ) from error
    if not isinstance(values, dict):
        raise CorruptCheckpointError(storage.full_name(name), f"is not a valid {purpose}")
    key = storage.key
    if key is not None:
        expected = key.signature(text.encode("utf-8", "replace"), purpose).encode("ascii")
        if not hmac.compare_digest(str(signature).encode("utf-8", "replace"), expected):
            raise CorruptCheckpointError(
                storage.full_name(name), f"is not signed by the key {key.identity}"
            )
    return values
